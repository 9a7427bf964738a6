//go:build darwin || freebsd

package main

import (
	"syscall"
	"unsafe"
)

func dup2(from, to int) error { return syscall.Dup2(from, to) }

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
	n, _, _ := syscall.Syscall(syscall.SYS_POLL, uintptr(unsafe.Pointer(&p)), 1, 0)
	return n == 1 && p.revents&pollHup != 0
}
