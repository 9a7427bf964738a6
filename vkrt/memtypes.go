package vkrt

import "nxvk/vkrt/vk"

// memType is a chosen memory type.
type memType struct {
	index uint32
	flags vk.MemoryPropertyFlags
	heap  uint32
}

// memTypes says which memory serves what.
type memTypes struct {
	tensor memType
	mapped bool    // tensors are mapped: host-visible and not slow for it
	cached bool    // … and fast to read from the host
	args   memType // argument tables: written once by the host, read by the device
	up     memType // staging towards the device
	down   memType // staging from the device
}

const (
	local    = vk.MemoryPropertyDeviceLocalBit
	visible  = vk.MemoryPropertyHostVisibleBit
	coherent = vk.MemoryPropertyHostCoherentBit
	cached   = vk.MemoryPropertyHostCachedBit
	host     = visible | coherent
	// Memory that is for something else, or that is slow for the sake of a property nobody asked for.
	special = vk.MemoryPropertyLazilyAllocatedBit | vk.MemoryPropertyProtectedBit | 0xc0 // AMD: device-coherent, -uncached
)

// chooseTypes picks memory types, among those whose bit is set in allowed. Drivers list faster types first.
func chooseTypes(d *physical, staging bool, allowed ...uint32) memTypes {
	bits := ^uint32(0)
	if len(allowed) > 0 {
		bits = allowed[0]
	}
	m := &d.memory
	// pick takes the first type that has all of want and none of avoid, trying each pair in turn.
	pick := func(pairs ...[2]vk.MemoryPropertyFlags) memType {
		for _, p := range pairs {
			for i := range m.MemoryTypeCount {
				t := m.MemoryTypes[i]
				if bits&(1<<i) != 0 && t.PropertyFlags&p[0] == p[0] && t.PropertyFlags&(p[1]|special) == 0 {
					return memType{i, t.PropertyFlags, t.HeapIndex}
				}
			}
		}
		return memType{}
	}
	type pair = [2]vk.MemoryPropertyFlags
	var r memTypes
	unified := d.Class == ClassCPU || d.Class == ClassIntegrated
	if unified && !staging {
		r.tensor = pick(pair{local | host | cached}, pair{local | host}, pair{local}, pair{})
	} else {
		r.tensor = pick(pair{local, visible}, pair{local}, pair{})
	}
	r.mapped = unified && !staging && r.tensor.flags&host == host
	r.cached = r.mapped && r.tensor.flags&cached != 0
	r.args = pick(pair{local | host}, pair{host})
	r.up = pick(pair{host, local}, pair{host})
	r.down = pick(pair{host | cached, local}, pair{host | cached}, pair{host})
	return r
}
