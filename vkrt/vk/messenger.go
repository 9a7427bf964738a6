package vk

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Messages go to the handler that their messenger's user data names: purego's callbacks live for
// ever, so there is one for the process.
var messengers struct {
	once     sync.Once
	callback uintptr
	handlers sync.Map // address of a MessageFunc, as the driver hands it back → *MessageFunc
}

// MessageFunc receives what the layers and the driver say. It may be called from any thread, during any
// command, and must not call Vulkan.
type MessageFunc func(severity DebugUtilsMessageSeverityFlagsEXT, id, message string)

// Messenger is an open debug messenger.
type Messenger struct {
	procs    *InstanceProcs
	instance Instance
	handle   DebugUtilsMessengerEXT
	key      uintptr
}

func onMessage(severity uintptr, _ uintptr, data *DebugUtilsMessengerCallbackDataEXT, user uintptr) uintptr {
	if f, ok := messengers.handlers.Load(user); ok && data != nil {
		(*f.(*MessageFunc))(DebugUtilsMessageSeverityFlagsEXT(severity), GoStringPtr(data.PMessageIdName, 1<<10), GoStringPtr(data.PMessage, 1<<16))
	}
	return 0
}

// NewMessenger sends warnings and errors to f until Close.
func (p *InstanceProcs) NewMessenger(i Instance, f MessageFunc) (*Messenger, error) {
	m := &messengers
	m.once.Do(func() { m.callback = purego.NewCallback(onMessage) })
	key := uintptr(unsafe.Pointer(&f))
	m.handlers.Store(key, &f)
	info := &DebugUtilsMessengerCreateInfoEXT{
		SType:           StructureTypeDebugUtilsMessengerCreateInfoEXT,
		MessageSeverity: DebugUtilsMessageSeverityWarningBitEXT | DebugUtilsMessageSeverityErrorBitEXT,
		MessageType: DebugUtilsMessageTypeGeneralBitEXT | DebugUtilsMessageTypeValidationBitEXT |
			DebugUtilsMessageTypePerformanceBitEXT,
		PfnUserCallback: m.callback,
		PUserData:       unsafe.Pointer(&f), // a key, which the driver keeps; the map keeps f alive
	}
	out := new(DebugUtilsMessengerEXT)
	if err := Check("vkCreateDebugUtilsMessengerEXT", p.CreateDebugUtilsMessengerEXT(i, info, out)); err != nil {
		m.handlers.Delete(key)
		return nil, err
	}
	return &Messenger{p, i, *out, key}, nil
}

// Close ends the messenger.
func (m *Messenger) Close() {
	m.procs.DestroyDebugUtilsMessengerEXT(m.instance, m.handle)
	messengers.handlers.Delete(m.key)
}
