// Package linalg factors and solves dense matrices on the CPU, one at a time, in row-major slices. Over the reals
// functions are generic in the type that they compute in; over the complex numbers they are methods
// of Field. It must not know tensors, batches or types of elements.
//
// Signs, order and rounding are those of Nx's own definitions of these decompositions, to the last bit, but where LAPACK
// (gonum) takes over for large matrices: see large.go.
//
// Start reading at real.go.
package linalg
