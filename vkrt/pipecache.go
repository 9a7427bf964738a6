package vkrt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
	"unsafe"

	"nxvk/vkrt/vk"
)

// The cache file: cacheMagic, the length of the data, its SHA-256, the data as the driver gave it.
const (
	cacheMagic  = "NXVKPC01"
	cacheHeader = len(cacheMagic) + 8 + sha256.Size
	cacheMost   = 256 << 20       // bytes; beyond it the cache starts anew
	cacheDelay  = 3 * time.Second // from the last pipeline made to the write
)

// cacheStore writes the pipeline cache to disk in the background.
type cacheStore struct {
	mu     sync.Mutex
	path   string      // "" without a cache on disk
	seen   fs.FileInfo // the file as it was last read or written here
	timer  *time.Timer
	dirty  bool
	closed bool
	saving sync.Mutex
	save   func()
}

// touch notes that a pipeline was made: the file is written when none has been for a while.
func (c *cacheStore) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path == "" || c.closed {
		return
	}
	c.dirty = true
	if c.timer == nil {
		c.timer = time.AfterFunc(cacheDelay, c.save)
	} else {
		c.timer.Reset(cacheDelay)
	}
}

// cachePath names the file for this device and driver in dir ("" is the user's cache folder, "-" none).
func (d *Device) cachePath(dir string) (string, error) {
	if dir == "-" {
		return "", nil
	}
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(base, "nxvk")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	i := &d.phys.Info
	return filepath.Join(dir, fmt.Sprintf("pipelines-%s-%s-%x.bin", i.DeviceUUID, i.DriverUUID, d.phys.driver)), nil
}

// openCache makes the driver's cache object, filled from disk where there is a sound file.
func (d *Device) openCache(dir string) error {
	path, err := d.cachePath(dir)
	if err != nil {
		d.log("warning", fmt.Sprintf("no pipeline cache on disk: %v", err))
	}
	var data []byte
	if path != "" {
		data, err = readCache(path)
		if err == nil && data != nil {
			err = vendorHeader(data, d.phys.VendorID, d.phys.DeviceID, d.phys.cacheUUID)
		}
		if err != nil {
			d.log("warning", fmt.Sprintf("pipeline cache %s discarded: %v", path, err))
			os.Remove(path)
			data = nil
		}
	}
	cache := new(vk.PipelineCache)
	create := func(data []byte) error {
		info := &vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo, InitialDataSize: uintptr(len(data))}
		if len(data) > 0 {
			info.PInitialData = unsafe.Pointer(&data[0])
		}
		return check("vkCreatePipelineCache", d.vk.CreatePipelineCache(d.handle, info, cache))
	}
	err = create(data)
	if err != nil && data != nil {
		d.log("warning", fmt.Sprintf("pipeline cache %s discarded: %v", path, err))
		err = create(nil)
	}
	if err != nil {
		return err
	}
	d.pipes.cache = *cache
	d.pipes.store.path, d.pipes.store.save = path, d.saveCache
	d.pipes.store.seen, _ = os.Stat(path)
	return nil
}

// mergeCache takes in what another process has written to the file meanwhile. A file that is not sound is no loss:
// it is about to be replaced.
func (d *Device) mergeCache() error {
	c := &d.pipes.store
	now, err := os.Stat(c.path)
	if err != nil || c.seen != nil && os.SameFile(now, c.seen) {
		return nil
	}
	data, err := readCache(c.path)
	if err != nil || data == nil || vendorHeader(data, d.phys.VendorID, d.phys.DeviceID, d.phys.cacheUUID) != nil {
		return nil
	}
	other := new(vk.PipelineCache)
	err = check("vkCreatePipelineCache", d.vk.CreatePipelineCache(d.handle, &vk.PipelineCacheCreateInfo{
		SType: vk.StructureTypePipelineCacheCreateInfo, InitialDataSize: uintptr(len(data)), PInitialData: unsafe.Pointer(&data[0]),
	}, other))
	if err != nil {
		return err
	}
	defer d.vk.DestroyPipelineCache(d.handle, *other)
	// The destination must not be in use by pipelines being made.
	d.pipes.using.Lock()
	defer d.pipes.using.Unlock()
	return check("vkMergePipelineCaches", d.vk.MergePipelineCaches(d.handle, d.pipes.cache, 1, other))
}

// readCache reads a cache file; nil without an error if there is none.
func readCache(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if st.Size() > cacheMost || st.Size() < int64(cacheHeader) {
		return nil, fmt.Errorf("%d bytes", st.Size())
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(raw) < cacheHeader || string(raw[:len(cacheMagic)]) != cacheMagic {
		return nil, errors.New("no cache file of this version")
	}
	data := raw[cacheHeader:]
	if n := binary.LittleEndian.Uint64(raw[len(cacheMagic):]); n != uint64(len(data)) {
		return nil, fmt.Errorf("%d bytes of data, its header says %d", len(data), n)
	}
	if sum := sha256.Sum256(data); !bytes.Equal(sum[:], raw[len(cacheMagic)+8:cacheHeader]) {
		return nil, errors.New("checksum does not match")
	}
	return data, nil
}

// writeCache replaces a cache file in one step.
func writeCache(path string, data []byte) error {
	sum := sha256.Sum256(data)
	head := append([]byte(cacheMagic), make([]byte, 8)...)
	binary.LittleEndian.PutUint64(head[len(cacheMagic):], uint64(len(data)))
	head = append(head, sum[:]...)
	f, err := os.CreateTemp(filepath.Dir(path), ".pipelines-*")
	if err != nil {
		return err
	}
	_, err = f.Write(head)
	if err == nil {
		_, err = f.Write(data)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// saveCache writes what the driver's cache holds, if that has changed since.
func (d *Device) saveCache() {
	c := &d.pipes.store
	c.saving.Lock()
	defer c.saving.Unlock()
	c.mu.Lock()
	dirty, path := c.dirty, c.path
	c.dirty = false
	c.mu.Unlock()
	if !dirty || path == "" {
		return
	}
	err := d.mergeCache()
	var data []byte
	if err == nil {
		data, err = d.cacheData()
	}
	if err == nil && len(data) > cacheMost-cacheHeader {
		err = fmt.Errorf("%d bytes, at most %d are kept", len(data), cacheMost)
	}
	if err == nil && len(data) > 0 {
		err = writeCache(path, data)
		c.seen, _ = os.Stat(path)
	}
	if err != nil {
		d.log("warning", fmt.Sprintf("pipeline cache %s not written: %v", path, err))
	}
}

func (d *Device) cacheData() ([]byte, error) {
	for {
		n := new(uintptr)
		if err := check("vkGetPipelineCacheData", d.vk.GetPipelineCacheData(d.handle, d.pipes.cache, n, nil)); err != nil || *n == 0 {
			return nil, err
		}
		data := make([]byte, *n)
		r := d.vk.GetPipelineCacheData(d.handle, d.pipes.cache, n, unsafe.Pointer(&data[0]))
		if r == vk.Incomplete {
			continue // it has grown in between
		}
		return data[:*n], check("vkGetPipelineCacheData", r)
	}
}

// closeCache writes the file a last time.
func (d *Device) closeCache() {
	c := &d.pipes.store
	c.mu.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	d.saveCache()
}
