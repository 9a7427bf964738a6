package kerneltest

import (
	"encoding/binary"
	"fmt"
	"math"

	"nxvk/kernel"
)

// Same compares what two runs of k left in memory, bit for bit, but that any NaN equals any NaN. The
// error names the argument and the first element that differs.
func Same(k *kernel.Kernel, got, want []kernel.Bind) error {
	for i, a := range k.Args {
		if a.Kind != kernel.ArgPtr {
			continue
		}
		if err := SameBytes(a.Mem, got[i].Buf, want[i].Buf); err != nil {
			return fmt.Errorf("kernel %s, argument %d %s: %w", k.Name, i, a.Name, err)
		}
	}
	return nil
}

// SameBytes compares two buffers of elements of m, as Same does.
func SameBytes(m kernel.Mem, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, want %d", len(got), len(want))
	}
	n := m.Size()
	count, first := 0, ""
	for at := 0; at+n <= len(want); at += n {
		g, w := element(got[at:], n), element(want[at:], n)
		if g == w || nan(m, g) && nan(m, w) {
			continue
		}
		if count == 0 {
			first = fmt.Sprintf("element %d is %s, want %s", at/n, show(m, g), show(m, w))
		}
		count++
	}
	if count > 0 {
		return fmt.Errorf("%s (%d of %d differ)", first, count, len(want)/n)
	}
	return nil
}

func element(b []byte, n int) uint64 {
	switch n {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func nan(m kernel.Mem, bits uint64) bool {
	switch m {
	case kernel.MF32:
		return math.IsNaN(float64(math.Float32frombits(uint32(bits))))
	case kernel.MF64:
		return math.IsNaN(math.Float64frombits(bits))
	}
	return false
}

func show(m kernel.Mem, bits uint64) string {
	switch m {
	case kernel.MF32:
		return fmt.Sprintf("%x (%#08x)", math.Float32frombits(uint32(bits)), bits)
	case kernel.MF64:
		return fmt.Sprintf("%x (%#016x)", math.Float64frombits(bits), bits)
	}
	return fmt.Sprintf("%#x", bits)
}
