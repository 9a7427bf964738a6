package host

import (
	"testing"

	"nxvk/graph"
)

// What Nx.BinaryBackend answers for complex numbers of 128 bits.
func TestComplex(t *testing.T) {
	for _, c := range []struct {
		op      graph.Op
		a, b, r complex128
	}{
		{"exp", complex(-0.3, 0.7), complex(0, 0), complex(0.566609028286408, 0.4772482007911177)},
		{"exp", complex(3.7, -0.2), complex(0, 0), complex(39.64105116707439, -8.035638889678753)},
		{"expm1", complex(-0.3, 0.7), complex(0, 0), complex(-0.433390971713592, 0.4772482007911177)},
		{"expm1", complex(3.7, -0.2), complex(0, 0), complex(38.64105116707439, -8.035638889678753)},
		{"log", complex(-0.3, 0.7), complex(0, 0), complex(-0.2723635877208361, 1.9756881130799802)},
		{"log", complex(3.7, -0.2), complex(0, 0), complex(1.3097916098899398, -0.05400150037596829)},
		{"log1p", complex(-0.3, 0.7), complex(0, 0), complex(-0.010101353658759677, 0.7853981633974483)},
		{"log1p", complex(3.7, -0.2), complex(0, 0), complex(1.5484670770314792, -0.0425275346197842)},
		{"sigmoid", complex(-0.3, 0.7), complex(0, 0), complex(0.41588676942324593, 0.17794292214437488)},
		{"sigmoid", complex(3.7, -0.2), complex(0, 0), complex(0.97632008175799, -0.004682046021586887)},
		{"cos", complex(-0.3, 0.7), complex(0, 0), complex(1.199108751098743, 0.22417681233754289)},
		{"cos", complex(3.7, -0.2), complex(0, 0), complex(-0.8651186477872713, -0.10667509061231588)},
		{"sin", complex(-0.3, 0.7), complex(0, 0), complex(-0.37092780393896435, 0.7247026904232853)},
		{"sin", complex(3.7, -0.2), complex(0, 0), complex(-0.5404682332662584, 0.17075307013954863)},
		{"tan", complex(-0.3, 0.7), complex(0, 0), complex(-0.18971709151908694, 0.6398359302631799)},
		{"tan", complex(3.7, -0.2), complex(0, 0), complex(0.5914032939681371, -0.2702994215997089)},
		{"cosh", complex(-0.3, 0.7), complex(0, 0), complex(0.7995189955990348, -0.19617735916146126)},
		{"cosh", complex(3.7, -0.2), complex(0, 0), complex(19.83264093452717, -4.015363541609998)},
		{"sinh", complex(-0.3, 0.7), complex(0, 0), complex(-0.2329099673126268, 0.6734255599525789)},
		{"sinh", complex(3.7, -0.2), complex(0, 0), complex(19.808410232547217, -4.020275348068754)},
		{"tanh", complex(-0.3, 0.7), complex(0, 0), complex(-0.46970516596755807, 0.7270371862435199)},
		{"tanh", complex(3.7, -0.2), complex(0, 0), complex(0.9988745183039428, -4.755304479613449e-4)},
		{"acos", complex(-0.3, 0.7), complex(0, 0), complex(-1.8165283328959763, 0.6703367429877897)},
		{"acos", complex(3.7, -0.2), complex(0, 0), complex(-0.05607765696692422, -1.984330829735995)},
		{"asin", complex(-0.3, 0.7), complex(0, 0), complex(-0.24573200610107968, 0.6703367429877897)},
		{"asin", complex(3.7, -0.2), complex(0, 0), complex(1.5147186698279724, -1.984330829735995)},
		{"atan", complex(-0.3, 0.7), complex(0, 0), complex(-0.48003518120284394, 0.7016804321523098)},
		{"atan", complex(3.7, -0.2), complex(0, 0), complex(1.3075168258968488, -0.01358107149004606)},
		{"acosh", complex(-0.3, 0.7), complex(0, 0), complex(-0.6703367429877897, -1.8165283328959763)},
		{"acosh", complex(3.7, -0.2), complex(0, 0), complex(1.984330829735995, -0.05607765696692422)},
		{"asinh", complex(-0.3, 0.7), complex(0, 0), complex(-0.3855909873181749, 0.7089034409655053)},
		{"asinh", complex(3.7, -0.2), complex(0, 0), complex(2.0205734867731886, -0.05213933113962854)},
		{"atanh", complex(-0.3, 0.7), complex(0, 0), complex(-0.1998818960296293, 0.6396697661585148)},
		{"atanh", complex(3.7, -0.2), complex(0, 0), complex(0.2762396595410995, -1.5550905752758186)},
		{"sqrt", complex(-0.3, 0.7), complex(0, 0), complex(0.4804046786753803, 0.7285524382590421)},
		{"sqrt", complex(3.7, -0.2), complex(0, 0), complex(1.9242402997975308, -0.0519685613124941)},
		{"rsqrt", complex(-0.3, 0.7), complex(0, 0), complex(0.6308022468598541, -0.9566362181904808)},
		{"rsqrt", complex(3.7, -0.2), complex(0, 0), complex(0.5193068333221676, 0.014025082527551197)},
		{"cbrt", complex(-0.3, 0.7), complex(0, 0), complex(0.7222339288963843, 0.5588678229162538)},
		{"cbrt", complex(3.7, -0.2), complex(0, 0), complex(1.5471819594865095, -0.027853057417982573)},
		{"negate", complex(-0.3, 0.7), complex(0, 0), complex(0.3, -0.7)},
		{"negate", complex(3.7, -0.2), complex(0, 0), complex(-3.7, 0.2)},
		{"conjugate", complex(-0.3, 0.7), complex(0, 0), complex(-0.3, -0.7)},
		{"conjugate", complex(3.7, -0.2), complex(0, 0), complex(3.7, 0.2)},
		{"abs", complex(-0.3, 0.7), complex(0, 0), complex(0.7615773105863908, 0)},
		{"abs", complex(3.7, -0.2), complex(0, 0), complex(3.7054014627297804, 0)},
		{"phase", complex(-0.3, 0.7), complex(0, 0), complex(1.9756881130799802, 0)},
		{"phase", complex(3.7, -0.2), complex(0, 0), complex(-0.05400150037596829, 0)},
		{"add", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(-2.8, -0.8)},
		{"add", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(-2.8, 2.7)},
		{"add", complex(-0.3, 0.7), complex(0.4, -1.5), complex(0.10000000000000003, -0.8)},
		{"add", complex(-0.3, 0.7), complex(0.4, 2.0), complex(0.10000000000000003, 2.7)},
		{"add", complex(-0.3, 0.7), complex(3.7, 0.0), complex(3.4000000000000004, 0.7)},
		{"subtract", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(2.2, 2.2)},
		{"subtract", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(2.2, -1.3)},
		{"subtract", complex(-0.3, 0.7), complex(0.4, -1.5), complex(-0.7, 2.2)},
		{"subtract", complex(-0.3, 0.7), complex(0.4, 2.0), complex(-0.7, -1.3)},
		{"subtract", complex(-0.3, 0.7), complex(3.7, 0.0), complex(-4.0, 0.7)},
		{"multiply", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(1.7999999999999998, -1.3)},
		{"multiply", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(-0.6499999999999999, -2.35)},
		{"multiply", complex(-0.3, 0.7), complex(0.4, -1.5), complex(0.9299999999999998, 0.73)},
		{"multiply", complex(-0.3, 0.7), complex(0.4, 2.0), complex(-1.52, -0.32)},
		{"multiply", complex(-0.3, 0.7), complex(3.7, 0.0), complex(-1.11, 2.59)},
		{"divide", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(-0.0352941176470588, -0.25882352941176473)},
		{"divide", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(0.2097560975609756, -0.1121951219512195)},
		{"divide", complex(-0.3, 0.7), complex(0.4, -1.5), complex(-0.48547717842323646, -0.07053941908713691)},
		{"divide", complex(-0.3, 0.7), complex(0.4, 2.0), complex(0.30769230769230765, 0.2115384615384615)},
		{"divide", complex(-0.3, 0.7), complex(3.7, 0.0), complex(-0.08108108108108109, 0.18918918918918917)},
		{"pow", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(-6.914432640955917, 37.6314248035895)},
		{"pow", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(0.026487724977903266, 0.02723122584005134)},
		{"pow", complex(-0.3, 0.7), complex(0.4, -1.5), complex(6.312246858223956, 16.17953043788701)},
		{"pow", complex(-0.3, 0.7), complex(0.4, 2.0), complex(0.01672624065441732, 0.004191680890338824)},
		{"pow", complex(-0.3, 0.7), complex(3.7, 0.0), complex(0.18891155853529973, 0.3123578752771537)},
		{"equal", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(0.0, 0)},
		{"equal", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(0.0, 0)},
		{"equal", complex(-0.3, 0.7), complex(0.4, -1.5), complex(0.0, 0)},
		{"equal", complex(-0.3, 0.7), complex(0.4, 2.0), complex(0.0, 0)},
		{"equal", complex(-0.3, 0.7), complex(3.7, 0.0), complex(0.0, 0)},
		{"not_equal", complex(-0.3, 0.7), complex(-2.5, -1.5), complex(1.0, 0)},
		{"not_equal", complex(-0.3, 0.7), complex(-2.5, 2.0), complex(1.0, 0)},
		{"not_equal", complex(-0.3, 0.7), complex(0.4, -1.5), complex(1.0, 0)},
		{"not_equal", complex(-0.3, 0.7), complex(0.4, 2.0), complex(1.0, 0)},
		{"not_equal", complex(-0.3, 0.7), complex(3.7, 0.0), complex(1.0, 0)},
	} {
		info, _ := graph.Lookup(c.op)
		in := []Tensor{tensor(spec(graph.C128), []complex128{c.a}, false), tensor(spec(graph.C128), []complex128{c.b}, false)}[:info.Min]
		n := graph.Node{Op: c.op, Spec: spec(graph.C128)}
		switch c.op {
		case "abs", "phase":
			n.Type = graph.F64
		case "equal", "not_equal":
			n.Type = graph.U8
		}
		out, err := ops[c.op](&n, in)
		if err != nil {
			t.Fatal(err)
		}
		if got := complexes(out[0])[0]; !(absComplex(got-c.r) <= 1e-14*absComplex(c.r)) {
			t.Errorf("%s(%v, %v) is %v, want %v", c.op, c.a, c.b, got, c.r)
		}
	}
}
