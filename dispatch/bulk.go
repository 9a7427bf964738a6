package dispatch

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Bulk files lie in a runtime directory that both sides know, 0600, and are deleted by who reads
// them. A name is checked as if an enemy had sent it: it must be a plain name of a regular file
// that is ours and nobody else's, and a link is not followed.

// bulkPath is the path of a bulk file.
func bulkPath(dir, name string) (string, error) {
	if dir == "" {
		return "", fmt.Errorf("no runtime_dir was given in hello")
	}
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\\\x00") {
		return "", fmt.Errorf("%q is no plain file name", name)
	}
	return filepath.Join(dir, name), nil
}

// openBulk opens a file of exactly size bytes, and deletes its name.
func openBulk(dir, name string, size int64) (*os.File, error) {
	path, err := bulkPath(dir, name)
	if err != nil {
		return nil, err
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	if err := checkBulk(f, size); err != nil {
		f.Close()
		return nil, err
	}
	if err := os.Remove(path); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func checkBulk(f *os.File, size int64) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", f.Name())
	case !ok || int(sys.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", f.Name())
	case st.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s has mode %04o, wants 0600", f.Name(), st.Mode().Perm())
	case st.Size() != size:
		return fmt.Errorf("%s has %d bytes, wants %d", f.Name(), st.Size(), size)
	}
	return nil
}

// readBulk reads a bulk file into memory.
func readBulk(dir, name string, into []byte) error {
	f, err := openBulk(dir, name, int64(len(into)))
	if err != nil {
		return err
	}
	defer f.Close()
	if n, err := io.ReadFull(f, into); err != nil {
		return fmt.Errorf("%s: %w after %d bytes of %d", f.Name(), err, n, len(into))
	}
	return nil
}

// readBulkPieces reads a bulk file of size bytes in pieces, which are lent to take.
func readBulkPieces(dir, name string, size int64, take func(offset int64, piece []byte) error) error {
	f, err := openBulk(dir, name, size)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, min(size, 4<<20))
	for at := int64(0); at < size; {
		piece := buf[:min(size-at, int64(len(buf)))]
		if _, err := io.ReadFull(f, piece); err != nil {
			return fmt.Errorf("%s: %w at byte %d of %d", f.Name(), err, at, size)
		}
		if err := take(at, piece); err != nil {
			return err
		}
		at += int64(len(piece))
	}
	return nil
}

// writeBulk makes a bulk file that the other side reads and deletes.
func writeBulk(dir, name string, data []byte) error {
	path, err := bulkPath(dir, name)
	if err != nil {
		return err
	}
	fd, err := syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(path)
	}
	return err
}
