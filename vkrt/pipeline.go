package vkrt

import (
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"nxvk/vkrt/vk"
)

// Pipeline is a kernel, ready to run. It stays valid for as long as it is referenced, also after the
// device's table of pipelines has dropped it.
type Pipeline struct {
	Name   string // as in profiles
	dev    *Device
	handle vk.Pipeline
}

// pipelines is a device's table of them: by hash of the SPIR-V, least recently used dropped first.
type pipelines struct {
	mu     sync.Mutex
	byHash map[[32]byte]*pipelineEntry
	order  *list.List // of *pipelineEntry, the most recently used in front
	most   int
	live   map[vk.Pipeline]struct{} // made and not destroyed
	closed bool

	layout vk.PipelineLayout
	cache  vk.PipelineCache
	using  sync.RWMutex // of cache: read-locked while a pipeline is made, locked while another cache is merged in
	store  cacheStore
	making sync.WaitGroup
	stats  PipelineStats
}

// pipelineEntry is a pipeline that is there or being made.
type pipelineEntry struct {
	hash  [32]byte
	ready chan struct{} // closed when p or err is set
	p     *Pipeline
	err   error
	at    *list.Element
}

// PipelineStats counts what Pipeline did.
type PipelineStats struct {
	Made    uint64        `json:"made"`
	Hits    uint64        `json:"hits"`
	Dropped uint64        `json:"dropped"`
	Live    int           `json:"live"`
	Time    time.Duration `json:"time"` // spent in the driver, summed over goroutines
}

func (d *Device) initPipelines(o Options) error {
	t := &d.pipes
	t.byHash, t.order, t.live = map[[32]byte]*pipelineEntry{}, list.New(), map[vk.Pipeline]struct{}{}
	t.most = o.Pipelines
	if t.most <= 0 {
		t.most = 2048
	}
	layout := new(vk.PipelineLayout)
	err := check("vkCreatePipelineLayout", d.vk.CreatePipelineLayout(d.handle, &vk.PipelineLayoutCreateInfo{
		SType: vk.StructureTypePipelineLayoutCreateInfo, PushConstantRangeCount: 1,
		PPushConstantRanges: &vk.PushConstantRange{StageFlags: vk.ShaderStageComputeBit, Size: 8},
	}, layout))
	if err != nil {
		return err
	}
	t.layout = *layout
	if err := d.openCache(o.CacheDir); err != nil {
		d.vk.DestroyPipelineLayout(d.handle, t.layout)
		return err
	}
	return nil
}

// Pipeline makes a pipeline of a SPIR-V module with an entry point "main", or yields the one made before from the
// same words. Concurrent calls for the same words make it once; others proceed in parallel. name is for profiles:
// the first caller's stays.
func (d *Device) Pipeline(name string, words []uint32) (*Pipeline, error) {
	if len(words) < 5 || words[0] != 0x07230203 {
		return nil, fmt.Errorf("vkrt: pipeline %s: %d words that do not start as SPIR-V does", name, len(words))
	}
	hash := sha256.Sum256(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 4*len(words)))
	t := &d.pipes
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, ErrClosed
	}
	if e, ok := t.byHash[hash]; ok {
		t.order.MoveToFront(e.at)
		t.stats.Hits++
		t.mu.Unlock()
		<-e.ready
		return e.p, e.err
	}
	e := &pipelineEntry{hash: hash, ready: make(chan struct{})}
	e.at = t.order.PushFront(e)
	t.byHash[hash] = e
	t.making.Add(1)
	t.mu.Unlock()
	defer t.making.Done()

	start := time.Now()
	handle, err := d.makePipeline(name, words)
	t.mu.Lock()
	t.stats.Time += time.Since(start)
	if err != nil {
		e.err = err
		t.remove(e) // a later call tries again
	} else {
		e.p = &Pipeline{Name: name, dev: d, handle: handle}
		t.live[handle] = struct{}{}
		t.stats.Made++
		runtime.AddCleanup(e.p, d.destroyPipeline, handle)
		for t.order.Len() > t.most && t.dropOldest() {
		}
	}
	t.mu.Unlock()
	close(e.ready)
	if err == nil {
		t.store.touch()
	}
	return e.p, err
}

// remove takes e out of the table. Under mu.
func (t *pipelines) remove(e *pipelineEntry) {
	if t.byHash[e.hash] == e {
		delete(t.byHash, e.hash)
		t.order.Remove(e.at)
	}
}

// dropOldest forgets the least recently used pipeline that is made. Recordings and holders keep theirs alive;
// the collector's cleanup destroys it after the last of them. Under mu.
func (t *pipelines) dropOldest() bool {
	for at := t.order.Back(); at != nil; at = at.Prev() {
		if e := at.Value.(*pipelineEntry); e.p != nil {
			t.remove(e)
			t.stats.Dropped++
			return true
		}
	}
	return false
}

func (d *Device) makePipeline(name string, words []uint32) (vk.Pipeline, error) {
	p := d.vk
	module := new(vk.ShaderModule)
	err := check("vkCreateShaderModule", p.CreateShaderModule(d.handle, &vk.ShaderModuleCreateInfo{
		SType: vk.StructureTypeShaderModuleCreateInfo, CodeSize: uintptr(4 * len(words)), PCode: &words[0],
	}, module))
	if err != nil {
		return 0, fmt.Errorf("vkrt: pipeline %s: %w", name, err)
	}
	defer p.DestroyShaderModule(d.handle, *module)
	d.pipes.using.RLock()
	defer d.pipes.using.RUnlock()
	out := new(vk.Pipeline)
	err = check("vkCreateComputePipelines", p.CreateComputePipelines(d.handle, d.pipes.cache, 1, &vk.ComputePipelineCreateInfo{
		SType: vk.StructureTypeComputePipelineCreateInfo, Layout: d.pipes.layout, BasePipelineIndex: -1,
		Stage: vk.PipelineShaderStageCreateInfo{
			SType: vk.StructureTypePipelineShaderStageCreateInfo, Stage: vk.ShaderStageComputeBit, Module: *module, PName: vk.CString("main"),
		},
	}, out))
	if err != nil {
		return 0, fmt.Errorf("vkrt: pipeline %s: %w", name, err)
	}
	return *out, nil
}

// destroyPipeline runs when nothing refers to the pipeline any more.
func (d *Device) destroyPipeline(handle vk.Pipeline) {
	t := &d.pipes
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.live[handle]; ok && !t.closed {
		delete(t.live, handle)
		d.vk.DestroyPipeline(d.handle, handle)
	}
}

// PipelineStats counts what was made and kept.
func (d *Device) PipelineStats() PipelineStats {
	t := &d.pipes
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Live = len(t.live)
	return s
}

func (d *Device) closePipelines() {
	t := &d.pipes
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.making.Wait()
	d.closeCache()
	t.mu.Lock()
	defer t.mu.Unlock()
	for h := range t.live {
		d.vk.DestroyPipeline(d.handle, h)
	}
	t.live, t.byHash = nil, nil
	d.vk.DestroyPipelineCache(d.handle, t.cache)
	d.vk.DestroyPipelineLayout(d.handle, t.layout)
}

// vendorHeader checks the header that every driver writes before its cache data (VkPipelineCacheHeaderVersionOne):
// a driver need not survive data that is not its own.
func vendorHeader(data []byte, vendor, device uint32, uuid UUID) error {
	if len(data) < 32 {
		return fmt.Errorf("%d bytes are no pipeline cache", len(data))
	}
	le := binary.LittleEndian
	size, version, v, dev := le.Uint32(data), le.Uint32(data[4:]), le.Uint32(data[8:]), le.Uint32(data[12:])
	switch {
	case size < 32 || uint64(size) > uint64(len(data)) || version != 1:
		return fmt.Errorf("header of %d bytes, version %d", size, version)
	case v != vendor || dev != device:
		return fmt.Errorf("made by device %#x:%#x, this is %#x:%#x", v, dev, vendor, device)
	case UUID(data[16:32]) != uuid:
		return fmt.Errorf("made by driver build %s, this is %s", UUID(data[16:32]), uuid)
	}
	return nil
}
