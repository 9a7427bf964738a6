package vkrt

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"nxvk/vkrt/vk"
)

// Class is a kind of device. Kernel shapes, memory and batching follow it.
type Class uint8

// The classes, worst first: Open prefers the greatest.
const (
	ClassUnknown Class = iota
	ClassCPU
	ClassVirtual
	ClassIntegrated
	ClassDiscrete
)

var classNames = [...]string{"unknown", "cpu", "virtual", "integrated", "discrete"}

func (c Class) String() string { return classNames[c] }

// MarshalText writes the name of the class.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the name of a class.
func (c *Class) UnmarshalText(b []byte) error {
	for i, n := range classNames {
		if n == string(b) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("vkrt: device class %q is none of %v", b, classNames)
}

// UUID identifies a device or a driver; it prints as hexadecimal digits.
type UUID [16]byte

func (u UUID) String() string { return hex.EncodeToString(u[:]) }

// MarshalText writes hexadecimal digits.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads hexadecimal digits.
func (u *UUID) UnmarshalText(b []byte) error {
	if len(b) != 32 {
		return fmt.Errorf("vkrt: UUID of %d digits, want 32", len(b))
	}
	_, err := hex.Decode(u[:], b)
	return err
}

// Features are what kernels may use.
type Features struct {
	F64                bool `json:"f64"`                    // shaderFloat64
	I64                bool `json:"i64"`                    // shaderInt64
	I16                bool `json:"i16"`                    // shaderInt16
	I8                 bool `json:"i8"`                     // shaderInt8
	F16                bool `json:"f16"`                    // shaderFloat16
	Storage8           bool `json:"storage8"`               // 8-bit elements in memory
	Storage16          bool `json:"storage16"`              // 16-bit elements in memory
	BufferAddress      bool `json:"buffer_address"`         // required
	Timeline           bool `json:"timeline"`               // timeline semaphores, required
	SignedZeroInfNan16 bool `json:"signed_zero_inf_nan_16"` // SignedZeroInfNanPreserve may be declared, by float width
	SignedZeroInfNan32 bool `json:"signed_zero_inf_nan_32"`
	SignedZeroInfNan64 bool `json:"signed_zero_inf_nan_64"`
	DenormPreserve32   bool `json:"denorm_preserve_32"`
	DenormPreserve64   bool `json:"denorm_preserve_64"`
	MemoryModel        bool `json:"memory_model"` // vulkanMemoryModel; not used, shown
	// Disabled lists the features that DisableVar has taken away, which the device itself may have.
	Disabled []string `json:"disabled,omitempty"`
}

// Limits are what kernels must stay within.
type Limits struct {
	MaxShared       uint32    `json:"max_shared"`      // bytes of shared memory of a workgroup
	MaxInvocations  uint32    `json:"max_invocations"` // of a workgroup
	MaxLocal        [3]uint32 `json:"max_local"`       // of a workgroup, by axis
	MaxGroups       [3]uint32 `json:"max_groups"`      // of a dispatch, by axis
	MaxPush         uint32    `json:"max_push"`        // bytes of push constants
	Subgroup        uint32    `json:"subgroup"`
	MaxAlloc        uint64    `json:"max_alloc"`         // bytes that one allocation is sure to reach
	MaxStorageRange uint64    `json:"max_storage_range"` // of a descriptor; addresses are not bound by it
	Timestamps      bool      `json:"timestamps"`
	TimestampPeriod float64   `json:"timestamp_period"` // nanoseconds a tick
}

// Heap is a memory heap.
type Heap struct {
	Size        uint64 `json:"size"`
	DeviceLocal bool   `json:"device_local"`
}

// Info describes a device.
type Info struct {
	Index      int    `json:"index"`
	Name       string `json:"name"`
	Class      Class  `json:"class"`
	Vendor     string `json:"vendor"`
	VendorID   uint32 `json:"vendor_id"`
	DeviceID   uint32 `json:"device_id"`
	Driver     string `json:"driver"`         // name
	DriverInfo string `json:"driver_version"` // as the driver writes it
	API        string `json:"api"`
	DeviceUUID UUID   `json:"device_uuid"`
	DriverUUID UUID   `json:"driver_uuid"`
	Features
	Limits
	Heaps []Heap `json:"heaps"`
	// DeviceLocalHostVisible: tensors lie in memory that the host maps, so transfers need no staging.
	DeviceLocalHostVisible bool `json:"device_local_host_visible"`
	// Missing is what the device lacks that this package requires; empty if it can be opened.
	Missing []string `json:"missing,omitempty"`
}

var vendors = map[uint32]string{
	0x1002: "amd", 0x1010: "imagination", 0x106b: "apple", 0x10de: "nvidia", 0x13b5: "arm", 0x14e4: "broadcom",
	0x1af4: "virtio", 0x5143: "qualcomm", 0x8086: "intel", 0x10005: "mesa", 0x10006: "pocl", 0x1ae0: "google",
}

// physical is a device that was probed but not opened.
type physical struct {
	Info
	handle     vk.PhysicalDevice
	api        uint32
	driver     uint32 // driverVersion, encoded as the vendor likes
	cacheUUID  UUID
	memory     vk.PhysicalDeviceMemoryProperties
	family     uint32
	tickMask   uint64 // valid bits of a timestamp
	extensions map[string]bool
	core       vk.PhysicalDeviceFeatures
	f11        vk.PhysicalDeviceVulkan11Features
	f12        vk.PhysicalDeviceVulkan12Features
}

// probe reads all that Info says, without opening the device.
func probe(p *vk.InstanceProcs, index int, handle vk.PhysicalDevice) (*physical, error) {
	d := &physical{handle: handle, extensions: map[string]bool{}}
	props := new(vk.PhysicalDeviceProperties)
	p.GetPhysicalDeviceProperties(handle, props)
	d.api, d.driver, d.cacheUUID = props.ApiVersion, props.DriverVersion, UUID(props.PipelineCacheUUID)
	d.Index = index
	d.Name = vk.GoString(props.DeviceName[:])
	d.VendorID, d.DeviceID = props.VendorID, props.DeviceID
	d.API = vk.VersionString(props.ApiVersion)
	d.Vendor = vendors[props.VendorID]
	d.Class = map[vk.PhysicalDeviceType]Class{
		vk.PhysicalDeviceTypeDiscreteGpu: ClassDiscrete, vk.PhysicalDeviceTypeIntegratedGpu: ClassIntegrated,
		vk.PhysicalDeviceTypeVirtualGpu: ClassVirtual, vk.PhysicalDeviceTypeCpu: ClassCPU,
	}[props.DeviceType]
	l := &props.Limits
	d.Limits = Limits{
		MaxShared: l.MaxComputeSharedMemorySize, MaxInvocations: l.MaxComputeWorkGroupInvocations,
		MaxLocal: l.MaxComputeWorkGroupSize, MaxGroups: l.MaxComputeWorkGroupCount, MaxPush: l.MaxPushConstantsSize,
		MaxStorageRange: uint64(l.MaxStorageBufferRange), TimestampPeriod: float64(l.TimestampPeriod),
	}
	if d.api < vk.Version(1, 2, 0) {
		d.Missing = append(d.Missing, "Vulkan 1.2")
		d.DriverInfo = fmt.Sprintf("%#x", props.DriverVersion)
		return d, nil
	}
	if err := d.probeExtensions(p); err != nil {
		return nil, err
	}
	off, err := disabled()
	if err != nil {
		return nil, err
	}
	d.probeFeatures(p, off)
	d.probeQueue(p)
	d.probeMemory(p)
	return d, nil
}

func (d *physical) probeExtensions(p *vk.InstanceProcs) error {
	n := new(uint32)
	if err := check("vkEnumerateDeviceExtensionProperties", p.EnumerateDeviceExtensionProperties(d.handle, nil, n, nil)); err != nil {
		return err
	}
	if *n == 0 {
		return nil
	}
	list := make([]vk.ExtensionProperties, *n)
	if err := check("vkEnumerateDeviceExtensionProperties", p.EnumerateDeviceExtensionProperties(d.handle, nil, n, &list[0])); err != nil {
		return err
	}
	for i := range list[:*n] {
		d.extensions[vk.GoString(list[i].ExtensionName[:])] = true
	}
	return nil
}

func (d *physical) probeFeatures(p *vk.InstanceProcs, off []string) {
	p12 := &vk.PhysicalDeviceVulkan12Properties{SType: vk.StructureTypePhysicalDeviceVulkan12Properties}
	p11 := &vk.PhysicalDeviceVulkan11Properties{SType: vk.StructureTypePhysicalDeviceVulkan11Properties, PNext: ptr(p12)}
	p.GetPhysicalDeviceProperties2(d.handle, &vk.PhysicalDeviceProperties2{SType: vk.StructureTypePhysicalDeviceProperties2, PNext: ptr(p11)})
	f12 := &vk.PhysicalDeviceVulkan12Features{SType: vk.StructureTypePhysicalDeviceVulkan12Features}
	f11 := &vk.PhysicalDeviceVulkan11Features{SType: vk.StructureTypePhysicalDeviceVulkan11Features, PNext: ptr(f12)}
	f := &vk.PhysicalDeviceFeatures2{SType: vk.StructureTypePhysicalDeviceFeatures2, PNext: ptr(f11)}
	p.GetPhysicalDeviceFeatures2(d.handle, f)
	d.core, d.f11, d.f12 = f.Features, *f11, *f12
	for _, name := range off {
		disablers[name](d)
	}
	d.Driver = vk.GoString(p12.DriverName[:])
	d.DriverInfo = vk.GoString(p12.DriverInfo[:])
	if d.DriverInfo == "" {
		d.DriverInfo = fmt.Sprintf("%#x", d.driver)
	}
	d.DeviceUUID, d.DriverUUID = UUID(p11.DeviceUUID), UUID(p11.DriverUUID)
	d.Subgroup, d.MaxAlloc = p11.SubgroupSize, p11.MaxMemoryAllocationSize
	d.Features = Features{
		F64: d.core.ShaderFloat64 != 0, I64: d.core.ShaderInt64 != 0, I16: d.core.ShaderInt16 != 0,
		I8: d.f12.ShaderInt8 != 0, F16: d.f12.ShaderFloat16 != 0,
		Storage8: d.f12.StorageBuffer8BitAccess != 0, Storage16: d.f11.StorageBuffer16BitAccess != 0,
		BufferAddress: f12.BufferDeviceAddress != 0, Timeline: f12.TimelineSemaphore != 0,
		SignedZeroInfNan16: p12.ShaderSignedZeroInfNanPreserveFloat16 != 0,
		SignedZeroInfNan32: p12.ShaderSignedZeroInfNanPreserveFloat32 != 0,
		SignedZeroInfNan64: p12.ShaderSignedZeroInfNanPreserveFloat64 != 0,
		DenormPreserve32:   p12.ShaderDenormPreserveFloat32 != 0,
		DenormPreserve64:   p12.ShaderDenormPreserveFloat64 != 0,
		MemoryModel:        f12.VulkanMemoryModel != 0,
		Disabled:           off,
	}
	for _, need := range []struct {
		ok   bool
		name string
	}{{d.BufferAddress, "bufferDeviceAddress"}, {d.Timeline, "timelineSemaphore"}} {
		if !need.ok {
			d.Missing = append(d.Missing, need.name)
		}
	}
}

func (d *physical) probeQueue(p *vk.InstanceProcs) {
	n := new(uint32)
	p.GetPhysicalDeviceQueueFamilyProperties(d.handle, n, nil)
	if *n > 0 {
		list := make([]vk.QueueFamilyProperties, *n)
		p.GetPhysicalDeviceQueueFamilyProperties(d.handle, n, &list[0])
		for i, q := range list[:*n] {
			if q.QueueFlags&vk.QueueComputeBit != 0 && q.QueueCount > 0 {
				d.family = uint32(i)
				d.Timestamps = q.TimestampValidBits > 0
				d.tickMask = ^uint64(0) >> (64 - min(q.TimestampValidBits, 64))
				return
			}
		}
	}
	d.Missing = append(d.Missing, "a compute queue")
}

func (d *physical) probeMemory(p *vk.InstanceProcs) {
	m := &vk.PhysicalDeviceMemoryProperties2{SType: vk.StructureTypePhysicalDeviceMemoryProperties2}
	p.GetPhysicalDeviceMemoryProperties2(d.handle, m)
	d.memory = m.MemoryProperties
	for _, h := range d.memory.MemoryHeaps[:d.memory.MemoryHeapCount] {
		d.Heaps = append(d.Heaps, Heap{h.Size, h.Flags&vk.MemoryHeapDeviceLocalBit != 0})
	}
	d.DeviceLocalHostVisible = chooseTypes(d, false).tensor.flags&vk.MemoryPropertyHostVisibleBit != 0
}

// choose picks the device that want names: an index, part of a name, or the best for "".
func choose(devices []*physical, want string) (*physical, error) {
	var best *physical
	// A short number is an index and nothing else: "1" must not find the 1 in a name. "3090" may.
	index, err := strconv.Atoi(want)
	byIndex := err == nil && len(want) <= 2
	for _, d := range devices {
		switch {
		case byIndex && index != d.Index:
			continue
		case byIndex || want == fmt.Sprint(d.Index):
			best = d
		case want != "" && !strings.Contains(strings.ToLower(d.Name), strings.ToLower(want)):
			continue
		case want == "" && len(d.Missing) > 0:
			continue
		case best == nil || want == "" && d.Class > best.Class:
			best = d
		}
		if want == fmt.Sprint(d.Index) {
			break
		}
	}
	if best != nil && len(best.Missing) == 0 {
		return best, nil
	}
	if best != nil {
		return nil, fmt.Errorf("vulkan: device %d, %s, lacks %s", best.Index, best.Name, strings.Join(best.Missing, ", "))
	}
	var have []string
	for _, d := range devices {
		s := fmt.Sprintf("%d: %s", d.Index, d.Name)
		if len(d.Missing) > 0 {
			s += " (lacks " + strings.Join(d.Missing, ", ") + ")"
		}
		have = append(have, s)
	}
	detail := "none is usable of " + strings.Join(have, "; ")
	if want != "" {
		detail = fmt.Sprintf("none matches %q of %s", want, strings.Join(have, "; "))
		return nil, fmt.Errorf("vulkan: %w: %s", vk.ErrNoDevice, detail)
	}
	return nil, vk.Unavailable(vk.ErrNoDevice, detail)
}
