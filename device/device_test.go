package device

import (
	"testing"

	"nxvk/kernel"
	"nxvk/vkrt"
)

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		name   string
		class  vkrt.Class
		vendor uint32
		f64    bool
		want   kernel.Class
		slow   bool
	}{
		{"NVIDIA H200", vkrt.ClassDiscrete, vendorNVIDIA, true, kernel.Discrete, false},
		{"NVIDIA A100-SXM4-80GB", vkrt.ClassDiscrete, vendorNVIDIA, true, kernel.Discrete, false},
		{"NVIDIA RTX A3000 Laptop GPU", vkrt.ClassDiscrete, vendorNVIDIA, true, kernel.Discrete, true},
		{"NVIDIA GeForce RTX 3060 Ti", vkrt.ClassDiscrete, vendorNVIDIA, true, kernel.Discrete, true},
		{"AMD Radeon RX 580 Series (RADV POLARIS10)", vkrt.ClassDiscrete, vendorAMD, true, kernel.Discrete, true},
		{"llvmpipe (LLVM 15.0.6, 256 bits)", vkrt.ClassCPU, 0x10005, true, kernel.CPU, false},
		{"Intel(R) Arc(tm) A770 Graphics (DG2)", vkrt.ClassDiscrete, 0x8086, false, kernel.Discrete, false},
		{"Intel(R) UHD Graphics", vkrt.ClassIntegrated, 0x8086, false, kernel.Integrated, false},
	} {
		info := vkrt.Info{Name: c.name, Class: c.class, VendorID: c.vendor}
		info.F64, info.I64, info.Storage8, info.MaxShared = c.f64, true, true, 1<<15
		got := Target(info)
		if got.Class != c.want || got.SlowF64 != c.slow || got.F64 != c.f64 || !got.Mem8 || got.Mem16 || got.MaxShared != 1<<15 {
			t.Errorf("%s: %+v", c.name, got)
		}
		info.I64 = false // what is written out for f64 takes 64-bit integers
		if got := Target(info); got.F64 || got.I64 || got.SlowF64 {
			t.Errorf("%s without int64: %+v", c.name, got)
		}
	}
}
