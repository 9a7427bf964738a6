package main

import (
	"syscall"
	"unsafe"
)

func dup2(from, to int) error { return syscall.Dup3(from, to, 0) }

// pollFD is struct pollfd.
type pollFD struct {
	fd      int32
	events  int16
	revents int16
}

const pollHup = 0x10

// hungUp reports whether the other end of a pipe is closed, without reading from it.
func hungUp(fd uintptr) bool {
	p := pollFD{fd: int32(fd)}
	var now syscall.Timespec
	n, _, _ := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&now)), 0, 0, 0)
	return n == 1 && p.revents&pollHup != 0
}
