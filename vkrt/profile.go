package vkrt

import (
	"cmp"
	"slices"
	"time"
	"unsafe"

	"nxvk/vkrt/vk"
)

// KernelTime is what the runs of one pipeline took, by the device's clock. Transfers stand as upload, copy and read.
type KernelTime struct {
	Name  string        `json:"name"`
	Count uint64        `json:"count"`
	Total time.Duration `json:"total"`
}

const queries = 2048 // timestamps a submission; one more than its operations

// querySlot holds the timestamps of a submission. Each is written when the operations before it have
// finished, so an operation's time is the difference to the one before it: where operations overlap, each gets
// what it adds.
type querySlot struct {
	pool  vk.QueryPool
	used  uint32
	names []string // of operations; timestamp i+1 ends operation i
	ticks []uint64
}

// Profile turns GPU timestamps on or off. Both submit what is recorded. On a device without timestamps nothing is timed.
func (s *Stream) Profile(on bool) error {
	if err := s.Submit(); err != nil {
		return err
	}
	s.profiling = on && s.dev.phys.Timestamps
	return nil
}

// Timings yields the times of all retired work since the last ResetTimings, the greatest first.
func (s *Stream) Timings() []KernelTime {
	all := make([]KernelTime, 0, len(s.timings))
	for _, t := range s.timings {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b KernelTime) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ResetTimings forgets what was timed.
func (s *Stream) ResetTimings() { clear(s.timings) }

func (q *querySlot) begin(s *Stream, cb vk.CommandBuffer) error {
	if q.pool == 0 {
		pool := new(vk.QueryPool)
		err := check("vkCreateQueryPool", s.vk.CreateQueryPool(s.dev.handle, &vk.QueryPoolCreateInfo{
			SType: vk.StructureTypeQueryPoolCreateInfo, QueryType: vk.QueryTypeTimestamp, QueryCount: queries,
		}, pool))
		if err != nil {
			return err
		}
		q.pool = *pool
		q.ticks = make([]uint64, queries)
	}
	s.vk.CmdResetQueryPool(cb, q.pool, 0, queries)
	s.call.CmdWriteTimestamp(s.vk, cb, vk.PipelineStageBottomOfPipeBit, q.pool, 0)
	q.used = 1
	return nil
}

// mark ends an operation. There is room: Stream.room saw to it.
func (q *querySlot) mark(s *Stream, cb vk.CommandBuffer, name string) {
	if q.used < queries {
		s.call.CmdWriteTimestamp(s.vk, cb, vk.PipelineStageBottomOfPipeBit, q.pool, q.used)
		q.used++
		q.names = append(q.names, name)
	}
}

func (q *querySlot) full() bool { return q.used >= queries-8 }

// collect adds a finished submission's times up.
func (q *querySlot) collect(s *Stream) error {
	n := q.used
	r := s.vk.GetQueryPoolResults(s.dev.handle, q.pool, 0, n, uintptr(8*n), unsafe.Pointer(&q.ticks[0]), 8, vk.QueryResult64Bit)
	if err := check("vkGetQueryPoolResults", r); err != nil {
		return err
	}
	for i, name := range q.names {
		ticks := (q.ticks[i+1] - q.ticks[i]) & s.dev.phys.tickMask
		t := s.timings[name]
		if t == nil {
			t = &KernelTime{Name: name}
			s.timings[name] = t
		}
		t.Count++
		t.Total += time.Duration(float64(ticks) * s.dev.phys.TimestampPeriod)
	}
	q.used, q.names = 0, q.names[:0]
	return nil
}

func (q *querySlot) close(s *Stream) {
	if q.pool != 0 {
		s.vk.DestroyQueryPool(s.dev.handle, q.pool)
	}
}
