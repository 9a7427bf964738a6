package graph

// Op names an operation; the names are those of the Nx.Backend callbacks.
type Op string

// The operations. What each takes (operands; attributes) and what its result must be is in the
// table below the names, and enforced by Verify.
const (
	OpConstant Op = "constant" // (; Value)
	OpIota     Op = "iota"     // (; Axis)
	OpEye      Op = "eye"      // ()

	OpAsType  Op = "as_type"
	OpBitcast Op = "bitcast"

	OpReshape   Op = "reshape"
	OpSqueeze   Op = "squeeze"   // (x; Axes)
	OpBroadcast Op = "broadcast" // (x; Axes: the result axis of each operand axis)
	OpTranspose Op = "transpose" // (x; Axes: the permutation)
	OpReverse   Op = "reverse"   // (x; Axes)
	OpPad       Op = "pad"       // (x, value; Pad)
	OpSlice     Op = "slice"     // (x, start0 … startN; Lengths, Strides): starts are rank-0 integers, clamped as Nx does
	OpPutSlice  Op = "put_slice" // (x, update, start0 … startN)
	OpConcat    Op = "concatenate"
	OpStack     Op = "stack"

	OpSelect Op = "select" // (pred, on_true, on_false)
	OpClip   Op = "clip"   // (x, min, max)

	OpSum       Op = "sum" // reductions: (x; Axes, Keep)
	OpProduct   Op = "product"
	OpReduceMax Op = "reduce_max"
	OpReduceMin Op = "reduce_min"
	OpAll       Op = "all"
	OpAny       Op = "any"
	OpArgMax    Op = "argmax" // (x; Axis, Keep, High)
	OpArgMin    Op = "argmin"

	OpDot  Op = "dot"  // (a, b; ContractA, BatchA, ContractB, BatchB)
	OpConv Op = "conv" // (x, kernel; Strides, Pad, Conv)

	OpComplex   Op = "complex"    // (real part, imaginary part) -> a complex tensor
	OpParts     Op = "parts"      // (x) -> the parts of a complex tensor, along a last axis of extent 2
	OpFromParts Op = "from_parts" // (x) -> the complex tensor whose parts lie along x's last axis

	OpElem Op = "elem" // (node of several results; Index)

	OpGather        Op = "gather"          // (x, indices; Axes)
	OpIndexedAdd    Op = "indexed_add"     // (x, indices, updates; Axes)
	OpIndexedPut    Op = "indexed_put"     // (x, indices, updates; Axes)
	OpTake          Op = "take"            // (x, indices; Axis)
	OpTakeAlongAxis Op = "take_along_axis" // (x, indices; Axis)

	OpReduce           Op = "reduce"        // (x, acc; Axes, Keep, Fun)
	OpWindowReduce     Op = "window_reduce" // (x, acc; Window, Strides, Pad, Dilation, Fun)
	OpWindowSum        Op = "window_sum"    // (x; Window, Strides, Pad, Dilation)
	OpWindowProduct    Op = "window_product"
	OpWindowMax        Op = "window_max"
	OpWindowMin        Op = "window_min"
	OpWindowScatterMax Op = "window_scatter_max" // (x, source, init; Window, Strides, Pad)
	OpWindowScatterMin Op = "window_scatter_min"

	OpSort              Op = "sort"           // (x; Axis, Desc): stable, NaN last (first when descending)
	OpArgSort           Op = "argsort"        // likewise
	OpTopK              Op = "top_k"          // (x) -> values, indices of the last axis
	OpCumulativeSum     Op = "cumulative_sum" // (x; Axis, Reverse)
	OpCumulativeProduct Op = "cumulative_product"
	OpCumulativeMax     Op = "cumulative_max"
	OpCumulativeMin     Op = "cumulative_min"

	OpFFT   Op = "fft"   // (x; Axis, Length, Eps): cropped or padded with zeros to Length
	OpIFFT  Op = "ifft"  // likewise
	OpFFT2  Op = "fft2"  // (x; Axes, Lengths, Eps): the axes in the order of transformation
	OpIFFT2 Op = "ifft2" // likewise
	OpRFFT  Op = "rfft"  // (x; Axis, Length, Eps): Length/2+1 results
	OpIRFFT Op = "irfft" // (x; Axis, Length, Eps): Length results

	OpTriangularSolve Op = "triangular_solve" // (a, b; Solve)
	OpCholesky        Op = "cholesky"
	OpSolve           Op = "solve"       // (a, b)
	OpLU              Op = "lu"          // (x; Eps) -> P, L, U
	OpQR              Op = "qr"          // (x; Full, Eps) -> Q, R
	OpSVD             Op = "svd"         // (x; Full, MaxIter) -> U, S, Vᵀ
	OpEigh            Op = "eigh"        // (x; MaxIter, Eps) -> eigenvalues, eigenvectors
	OpDeterminant     Op = "determinant" // (x)

	OpLogicalNot Op = "logical_not"
	OpPhase      Op = "phase"
	OpAllClose   Op = "all_close" // (a, b; RTol, ATol, EqualNaN)
)

// Binary lists the elementwise operations of two operands. Operands broadcast to the result's shape
// and are read in their own types: nothing was cast before.
var Binary = []Op{
	"add", "subtract", "multiply", "pow", "remainder", "divide", "atan2", "min", "max", "quotient",
	"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
	"equal", "not_equal", "greater", "less", "greater_equal", "less_equal",
	"logical_and", "logical_or", "logical_xor",
}

// Unary lists the elementwise operations of one operand.
var Unary = []Op{
	"exp", "expm1", "log", "log1p", "sigmoid", "cos", "sin", "tan", "cosh", "sinh", "tanh",
	"acos", "asin", "atan", "acosh", "asinh", "atanh", "sqrt", "rsqrt", "cbrt", "erf", "erfc", "erf_inv",
	"abs", "bitwise_not", "ceil", "conjugate", "floor", "negate", "round", "sign",
	"count_leading_zeros", "population_count", "real", "imag", "is_nan", "is_infinity",
}
