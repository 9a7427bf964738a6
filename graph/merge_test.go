package graph

import "testing"

func TestMergeTypes(t *testing.T) {
	for _, c := range []struct{ a, b, want Type }{
		{U8, U16, U16}, {U8, S8, S16}, {S8, U16, S32}, {U64, S8, S64}, {U2, S2, S4}, {S2, U64, S64}, {S64, BF16, BF16},
		{BF16, F16, F16}, {F8, BF16, F8}, {F32, F64, F64}, {F16, F8, F16}, {F8E4M3FN, F32, F8E4M3FN}, {F32, F8E4M3FN, F32},
		{BF16, F8E4M3FN, F8E4M3FN}, {F64, C64, C128}, {C64, F32, C64}, {S64, C64, C64}, {C64, C128, C128}, {BF16, C64, C64},
	} {
		if got := MergeTypes(c.a, c.b); got != c.want {
			t.Errorf("%v with %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}
