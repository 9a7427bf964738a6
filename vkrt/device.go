package vkrt

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"unsafe"

	"nxvk/vkrt/vk"
)

const validationLayer = "VK_LAYER_KHRONOS_validation"

func ptr[T any](p *T) unsafe.Pointer { return unsafe.Pointer(p) }

// instance is an open Vulkan instance.
type instance struct {
	procs  *vk.InstanceProcs
	handle vk.Instance
}

// instances are the process's, without and with the validation layer. They stay open: with the last instance the loader
// unloads the drivers, and NVIDIA's can be loaded into a process some fifteen times only.
var instances struct {
	sync.Mutex
	plain, validated *instance
}

// theInstance yields the process's instance.
func theInstance(validation bool) (*instance, error) {
	instances.Lock()
	defer instances.Unlock()
	in := &instances.plain
	if validation {
		in = &instances.validated
	}
	if *in == nil {
		n, err := newInstance(validation)
		if err != nil {
			return nil, err
		}
		*in = n
	}
	return *in, nil
}

func newInstance(validation bool) (*instance, error) {
	l, err := vk.Open()
	if err != nil {
		return nil, err
	}
	extensions, err := instanceExtensions(l, nil)
	if err != nil {
		return nil, err
	}
	info := &vk.InstanceCreateInfo{
		SType: vk.StructureTypeInstanceCreateInfo,
		PApplicationInfo: &vk.ApplicationInfo{
			SType: vk.StructureTypeApplicationInfo, PApplicationName: vk.CString("nxvk"), PEngineName: vk.CString("nxvk"),
			ApiVersion: vk.Version(1, 2, 0),
		},
	}
	var enable []string
	if extensions["VK_KHR_portability_enumeration"] {
		enable = append(enable, "VK_KHR_portability_enumeration")
		info.Flags |= vk.InstanceCreateEnumeratePortabilityBitKHR // MoltenVK
	}
	if validation {
		layer := validationLayer
		more, err := instanceExtensions(l, vk.CString(layer))
		if err != nil || !more["VK_EXT_debug_utils"] && !extensions["VK_EXT_debug_utils"] {
			return nil, fmt.Errorf("vulkan: validation was asked for, but the layer %s is not installed (Debian: vulkan-validationlayers, FreeBSD: vulkan-validation-layers)", layer)
		}
		enable = append(enable, "VK_EXT_debug_utils")
		info.EnabledLayerCount, info.PpEnabledLayerNames = 1, vk.CStrings([]string{layer})
		if more["VK_EXT_validation_features"] {
			enable = append(enable, "VK_EXT_validation_features")
			sync := new(vk.ValidationFeatureEnableEXT)
			*sync = vk.ValidationFeatureEnableSynchronizationValidationEXT
			info.PNext = ptr(&vk.ValidationFeaturesEXT{
				SType: vk.StructureTypeValidationFeaturesEXT, EnabledValidationFeatureCount: 1, PEnabledValidationFeatures: sync,
			})
		}
	}
	info.EnabledExtensionCount, info.PpEnabledExtensionNames = uint32(len(enable)), vk.CStrings(enable)
	h := new(vk.Instance)
	if r := l.CreateInstance(info, h); r != vk.Success {
		if r == vk.ErrorIncompatibleDriver {
			return nil, vk.Unavailable(vk.ErrNoDriver, "vkCreateInstance: "+r.String())
		}
		return nil, check("vkCreateInstance", r)
	}
	procs, err := l.LoadInstance(*h)
	if err != nil {
		return nil, err
	}
	return &instance{procs: procs, handle: *h}, nil
}

// listen sends what the validation layer says to log, until the messenger is closed.
func (in *instance) listen(log func(level, msg string)) (*vk.Messenger, error) {
	return in.procs.NewMessenger(in.handle, func(severity vk.DebugUtilsMessageSeverityFlagsEXT, id, message string) {
		level := "warning"
		if severity&vk.DebugUtilsMessageSeverityErrorBitEXT != 0 {
			level = "error"
		}
		log(level, "validation: "+id+": "+message)
	})
}

func instanceExtensions(l *vk.Loader, layer *byte) (map[string]bool, error) {
	n := new(uint32)
	if err := check("vkEnumerateInstanceExtensionProperties", l.EnumerateInstanceExtensionProperties(layer, n, nil)); err != nil {
		return nil, err
	}
	have := map[string]bool{}
	if *n == 0 {
		return have, nil
	}
	list := make([]vk.ExtensionProperties, *n)
	if err := check("vkEnumerateInstanceExtensionProperties", l.EnumerateInstanceExtensionProperties(layer, n, &list[0])); err != nil {
		return nil, err
	}
	for i := range list[:*n] {
		have[vk.GoString(list[i].ExtensionName[:])] = true
	}
	return have, nil
}

// devices probes every device of the instance.
func (in *instance) devices() ([]*physical, error) {
	n := new(uint32)
	r := in.procs.EnumeratePhysicalDevices(in.handle, n, nil)
	if r == vk.ErrorInitializationFailed {
		// What the loader says when no driver could be loaded, or none of them started.
		return nil, vk.Unavailable(vk.ErrNoDriver, "vkEnumeratePhysicalDevices: "+r.String())
	}
	if err := check("vkEnumeratePhysicalDevices", r); err != nil {
		return nil, err
	}
	if *n == 0 {
		return nil, vk.Unavailable(vk.ErrNoDevice, "")
	}
	handles := make([]vk.PhysicalDevice, *n)
	if err := check("vkEnumeratePhysicalDevices", in.procs.EnumeratePhysicalDevices(in.handle, n, &handles[0])); err != nil {
		return nil, err
	}
	var all []*physical
	for i, h := range handles[:*n] {
		d, err := probe(in.procs, i, h)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// Devices describes every device, without opening any. Errors wrap vk.ErrNoLoader, vk.ErrNoDriver or vk.ErrNoDevice.
func Devices() ([]Info, error) {
	in, err := theInstance(false)
	if err != nil {
		return nil, err
	}
	all, err := in.devices()
	var infos []Info
	for _, d := range all {
		infos = append(infos, d.Info)
	}
	return infos, err
}

// Device is an open device.
type Device struct {
	phys      *physical
	in        *instance
	messenger *vk.Messenger // with validation
	vk        *vk.DeviceProcs
	handle    vk.Device
	queue     vk.Queue
	log       func(level, msg string)

	submitting sync.Mutex // guards queue
	ring       int
	mem        memory
	pools      hostPools
	pipes      pipelines
	closed     atomic.Bool

	opening sync.Mutex // guards additions to streams
	streams atomic.Pointer[[]*Stream]
}

// Open opens the device that o names.
func Open(o Options) (*Device, error) {
	if o.Log == nil {
		o.Log = func(string, string) {}
	}
	if _, set := os.LookupEnv("LP_NUM_THREADS"); o.Threads != 0 && !set {
		os.Setenv("LP_NUM_THREADS", strconv.Itoa(max(o.Threads, 0)))
	}
	in, err := theInstance(o.Validation)
	if err != nil {
		return nil, err
	}
	var messenger *vk.Messenger
	if o.Validation {
		if messenger, err = in.listen(o.Log); err != nil {
			return nil, err
		}
	}
	d, err := open(in, o)
	if err != nil {
		if messenger != nil {
			messenger.Close()
		}
		return nil, err
	}
	d.messenger = messenger
	return d, nil
}

func open(in *instance, o Options) (*Device, error) {
	all, err := in.devices()
	if err != nil {
		return nil, err
	}
	phys, err := choose(all, o.Device)
	if err != nil {
		return nil, err
	}
	d := &Device{phys: phys, in: in, log: o.Log, ring: o.Ring}
	if d.ring == 0 {
		d.ring = 8
	}
	d.ring = max(d.ring, 2)
	d.streams.Store(&[]*Stream{})
	if err := d.create(); err != nil {
		return nil, err
	}
	bits, err := d.bufferTypes()
	if err == nil {
		d.mem.types = chooseTypes(phys, o.staging, bits)
		d.phys.DeviceLocalHostVisible = d.mem.types.mapped
		d.initMemory(o.Limit)
		d.pools.init(d)
		err = d.initPipelines(o)
	}
	if err != nil {
		d.vk.DestroyDevice(d.handle)
		return nil, err
	}
	return d, nil
}

// create makes the logical device with its queue and the features that kernels may use.
func (d *Device) create() error {
	p := d.phys
	f12 := &vk.PhysicalDeviceVulkan12Features{
		SType: vk.StructureTypePhysicalDeviceVulkan12Features, BufferDeviceAddress: 1, TimelineSemaphore: 1,
		StorageBuffer8BitAccess: p.f12.StorageBuffer8BitAccess, UniformAndStorageBuffer8BitAccess: p.f12.UniformAndStorageBuffer8BitAccess,
		ShaderFloat16: p.f12.ShaderFloat16, ShaderInt8: p.f12.ShaderInt8, ScalarBlockLayout: p.f12.ScalarBlockLayout,
		VulkanMemoryModel: p.f12.VulkanMemoryModel, VulkanMemoryModelDeviceScope: p.f12.VulkanMemoryModelDeviceScope,
		ShaderSubgroupExtendedTypes: p.f12.ShaderSubgroupExtendedTypes, ShaderBufferInt64Atomics: p.f12.ShaderBufferInt64Atomics,
	}
	f11 := &vk.PhysicalDeviceVulkan11Features{
		SType: vk.StructureTypePhysicalDeviceVulkan11Features, PNext: ptr(f12),
		StorageBuffer16BitAccess: p.f11.StorageBuffer16BitAccess, UniformAndStorageBuffer16BitAccess: p.f11.UniformAndStorageBuffer16BitAccess,
	}
	f := &vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: ptr(f11)}
	f.Features.ShaderFloat64, f.Features.ShaderInt64, f.Features.ShaderInt16 = p.core.ShaderFloat64, p.core.ShaderInt64, p.core.ShaderInt16
	var extensions []string
	if p.extensions["VK_KHR_portability_subset"] {
		extensions = append(extensions, "VK_KHR_portability_subset") // must be on where it exists
	}
	priority := new(float32)
	*priority = 1
	info := &vk.DeviceCreateInfo{
		SType: vk.StructureTypeDeviceCreateInfo, PNext: ptr(f), QueueCreateInfoCount: 1,
		PQueueCreateInfos: &vk.DeviceQueueCreateInfo{
			SType: vk.StructureTypeDeviceQueueCreateInfo, QueueFamilyIndex: p.family, QueueCount: 1, PQueuePriorities: priority,
		},
		EnabledExtensionCount: uint32(len(extensions)), PpEnabledExtensionNames: vk.CStrings(extensions),
	}
	h := new(vk.Device)
	if err := check("vkCreateDevice", d.in.procs.CreateDevice(p.handle, info, h)); err != nil {
		return err
	}
	d.handle = *h
	procs, err := d.in.procs.LoadDevice(*h)
	if err != nil {
		return err
	}
	d.vk = procs
	q := new(vk.Queue)
	d.vk.GetDeviceQueue(d.handle, p.family, 0, q)
	d.queue = *q
	return nil
}

// bufferTypes is the mask of memory types that buffers of the kind used here may lie in.
func (d *Device) bufferTypes() (uint32, error) {
	b := new(vk.Buffer)
	err := check("vkCreateBuffer", d.vk.CreateBuffer(d.handle, &vk.BufferCreateInfo{
		SType: vk.StructureTypeBufferCreateInfo, Size: 1 << 16, SharingMode: vk.SharingModeExclusive,
		Usage: vk.BufferUsageStorageBufferBit | vk.BufferUsageShaderDeviceAddressBit | vk.BufferUsageTransferSrcBit | vk.BufferUsageTransferDstBit,
	}, b))
	if err != nil {
		return 0, err
	}
	defer d.vk.DestroyBuffer(d.handle, *b)
	req := new(vk.MemoryRequirements)
	d.vk.GetBufferMemoryRequirements(d.handle, *b, req)
	return req.MemoryTypeBits, nil
}

// Info describes the device.
func (d *Device) Info() Info { return d.phys.Info }

// Close waits for the device, runs the callbacks of what was submitted, tells the others ErrClosed, saves the pipeline
// cache and frees everything. Buffers, streams and pipelines of the device must not be in use by other goroutines.
func (d *Device) Close() error {
	if !d.closed.CompareAndSwap(false, true) {
		return nil
	}
	err := check("vkDeviceWaitIdle", d.waitIdle())
	if errors.Is(err, ErrDeviceLost) {
		err = nil // it was said before; everything can be freed
	}
	d.opening.Lock()
	for _, s := range *d.streams.Load() {
		s.close()
	}
	d.opening.Unlock()
	d.closePipelines()
	d.pools.close()
	m := &d.mem
	m.mu.Lock()
	m.closed = true
	if m.timer != nil {
		m.timer.Stop()
	}
	for _, b := range m.blocks {
		d.freeBlock(b.mem)
		b.mem.host = nil
	}
	m.blocks = nil
	m.mu.Unlock()
	d.vk.DestroyDevice(d.handle)
	if d.messenger != nil {
		d.messenger.Close()
	}
	return err
}

func (d *Device) waitIdle() vk.Result {
	d.submitting.Lock()
	defer d.submitting.Unlock()
	return d.vk.DeviceWaitIdle(d.handle)
}
