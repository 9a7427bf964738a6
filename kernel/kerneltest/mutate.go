package kerneltest

import "nxvk/kernel"

// Mutate edits fields of instructions: four bytes of edits are a place, a field and what to put there.
// What comes out is seldom a valid kernel.
func Mutate(k *kernel.Kernel, edits []byte) {
	var all []*kernel.Instr
	var collect func(body []kernel.Instr)
	collect = func(body []kernel.Instr) {
		for i := range body {
			all = append(all, &body[i])
			collect(body[i].Body)
			collect(body[i].Else)
		}
	}
	collect(k.Body)
	for ; len(edits) >= 4; edits = edits[4:] {
		in := all[(int(edits[0])<<8+int(edits[1]))%len(all)]
		n := edits[3]
		switch edits[2] % 12 {
		case 0:
			in.Op = kernel.Op(n)
		case 1:
			in.Type = kernel.Type(n % 8)
		case 2:
			in.A = kernel.Value(n)
		case 3:
			in.B = kernel.Value(n)
		case 4:
			in.C = kernel.Value(int8(n))
		case 5:
			in.Imm = uint64(n) << (n % 60)
		case 6:
			in.Dst = kernel.Value(n)
		case 7:
			in.N = n
		case 8:
			in.Body = nil
		case 9:
			*in = *all[int(n)%len(all)]
			in.Body, in.Else = nil, nil
		case 10:
			k.Local[n%3] = uint32(n)
		case 11:
			k.Values = int(n) * 2
		}
	}
}
