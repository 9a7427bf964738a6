package vk

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// Why no device can be had. Errors wrap one of these and say what to install.
var (
	ErrNoLoader = errors.New("no Vulkan loader")
	ErrNoDriver = errors.New("no Vulkan driver")
	ErrNoDevice = errors.New("no Vulkan device")
)

// libraries are the names to try, best first. NXVK_LIBVULKAN names one instead.
func libraries(goos string) []string {
	switch goos {
	case "darwin":
		return []string{
			"libvulkan.1.dylib", "libvulkan.dylib",
			"/opt/homebrew/lib/libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib",
			"libMoltenVK.dylib", "/opt/homebrew/lib/libMoltenVK.dylib", "/usr/local/lib/libMoltenVK.dylib",
			"vulkan.framework/vulkan", "MoltenVK.framework/MoltenVK",
		}
	case "freebsd":
		return []string{"libvulkan.so.1", "libvulkan.so", "/usr/local/lib/libvulkan.so.1"}
	}
	return []string{"libvulkan.so.1", "libvulkan.so"}
}

// Advice says what to install on goos for the given cause.
func Advice(goos string, cause error) string {
	type key struct {
		goos  string
		cause error
	}
	advice := map[key]string{
		{"linux", ErrNoLoader}:   "install the loader: Debian and Ubuntu `apt install libvulkan1 mesa-vulkan-drivers`, Fedora `dnf install vulkan-loader mesa-vulkan-drivers`, Arch `pacman -S vulkan-icd-loader`",
		{"linux", ErrNoDriver}:   "install a driver: `mesa-vulkan-drivers` (AMD, Intel, and lavapipe on any CPU) or NVIDIA's own; VK_DRIVER_FILES, if set, must name a file that exists",
		{"linux", ErrNoDevice}:   "see what `vulkaninfo --summary` says; may this user open /dev/dri/renderD* (group `render`) or /dev/nvidia*?",
		{"freebsd", ErrNoLoader}: "`pkg install vulkan-loader vulkan-tools mesa-dri`",
		{"freebsd", ErrNoDriver}: "`pkg install mesa-dri` (AMD, Intel, and lavapipe on any CPU) or `pkg install nvidia-driver` (Kepler: nvidia-driver-470)",
		{"freebsd", ErrNoDevice}: "load the kernel module (`kldload nvidia-modeset`, or drm-kmod's i915kms or amdgpu), and join the group `video`",
		{"darwin", ErrNoLoader}:  "`brew install vulkan-loader molten-vk`",
		{"darwin", ErrNoDriver}:  "`brew install molten-vk`",
		{"darwin", ErrNoDevice}:  "MoltenVK needs a Mac with Metal; in a virtual machine there may be none",
	}
	return advice[key{goos, cause}]
}

// Unavailable makes the error for cause (ErrNoLoader, ErrNoDriver or ErrNoDevice), with detail and advice.
func Unavailable(cause error, detail string) error {
	msg := ""
	if detail != "" {
		msg = ": " + detail
	}
	if a := Advice(runtime.GOOS, cause); a != "" {
		msg += "; " + a
	}
	return fmt.Errorf("vulkan: %w%s", cause, msg)
}

var opened struct {
	sync.Mutex
	*Loader
}

// Open opens the system's Vulkan loader, once for the process. The environment variable NXVK_LIBVULKAN names another
// library. The error wraps ErrNoLoader.
func Open() (*Loader, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.Loader != nil {
		return opened.Loader, nil
	}
	l, err := open(candidates())
	if err == nil {
		opened.Loader = l
	}
	return l, err
}

func candidates() []string {
	if p := os.Getenv("NXVK_LIBVULKAN"); p != "" {
		return []string{p}
	}
	return libraries(runtime.GOOS)
}

func open(names []string) (*Loader, error) {
	var tried []string
	for _, name := range names {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			tried = append(tried, err.Error())
			continue
		}
		get, err := purego.Dlsym(h, "vkGetInstanceProcAddr")
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s: no vkGetInstanceProcAddr", name))
			purego.Dlclose(h)
			continue
		}
		l := &Loader{Path: name, instance: get}
		missing := loadTable(l.table(), func(n *byte) uintptr { return l.instanceProc(0, n) })
		if missing != nil {
			tried = append(tried, fmt.Sprintf("%s: no %s (a Vulkan 1.0 loader?)", name, strings.Join(missing, ", ")))
			purego.Dlclose(h)
			continue
		}
		return l, nil
	}
	return nil, Unavailable(ErrNoLoader, "tried "+strings.Join(tried, "; "))
}
