package devtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"unsafe"
)

// validator remembers which modules have passed: in this process by hash, and, since the tool takes
// longer than most tests, in the user's cache folder from one process to the next.
var validator struct {
	sync.Once
	mu     sync.Mutex
	tool   string
	folder string // "" where nothing is kept
	passed map[[sha256.Size]byte]bool
}

// validate runs spirv-val on a module. Where there is no such tool it says so, once.
func validate(words []uint32) error {
	v := &validator
	v.Do(func() {
		v.passed = map[[sha256.Size]byte]bool{}
		v.tool, _ = exec.LookPath("spirv-val")
		if v.tool == "" {
			fmt.Println("SKIPPED: validation of SPIR-V modules: no spirv-val on PATH")
			return
		}
		release, err := exec.Command(v.tool, "--version").Output()
		cache, cacheErr := os.UserCacheDir()
		if err != nil || cacheErr != nil {
			return
		}
		of := sha256.Sum256(release)
		folder := filepath.Join(cache, "nxvk", "spirv-val-"+hex.EncodeToString(of[:4]))
		if os.MkdirAll(folder, 0o700) == nil {
			v.folder = folder
		}
	})
	if v.tool == "" {
		return nil
	}
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
	hash := sha256.Sum256(raw)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.passed[hash] {
		return nil
	}
	mark := filepath.Join(v.folder, hex.EncodeToString(hash[:]))
	if v.folder != "" {
		if _, err := os.Stat(mark); err == nil {
			v.passed[hash] = true
			return nil
		}
	}
	file, err := os.CreateTemp("", "nxvk-*.spv")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	if _, err = file.Write(raw); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if out, err := exec.Command(v.tool, "--target-env", "vulkan1.2", file.Name()).CombinedOutput(); err != nil {
		return fmt.Errorf("spirv-val: %w: %s", err, out)
	}
	v.passed[hash] = true
	if v.folder != "" {
		// The mark only saves time: a failure to write it costs nothing else.
		_ = os.WriteFile(mark, nil, 0o600)
	}
	return nil
}
