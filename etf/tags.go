// Package etf reads and writes Erlang's external term format, version 131.
//
// Two ways to read: Decoder is a cursor over one frame that hands out what is asked for, borrows
// binaries and atoms from the frame and allocates nothing; Decode builds the whole term. Writing is by
// Append functions, in the manner of strconv, or AppendTerm for a built term. It must not know what
// the terms mean.
//
// Start reading at decoder.go; term.go has the built form, encode.go the writers.
package etf

import "fmt"

// Version is the first byte of every encoded term.
const Version = 131

// The tags of the format. Those of the distribution's atom cache (68, 69, 82) never stand in a term
// made by term_to_binary.
const (
	tagNewFloat      = 70
	tagBitBinary     = 77
	tagCompressed    = 80
	tagNewPid        = 88
	tagNewPort       = 89
	tagNewerRef      = 90
	tagSmallInt      = 97
	tagInt           = 98
	tagFloat         = 99
	tagAtom          = 100 // Latin-1, long
	tagRef           = 101
	tagPort          = 102
	tagPid           = 103
	tagSmallTuple    = 104
	tagLargeTuple    = 105
	tagNil           = 106
	tagString        = 107
	tagList          = 108
	tagBinary        = 109
	tagSmallBig      = 110
	tagLargeBig      = 111
	tagNewFun        = 112
	tagExport        = 113
	tagNewRef        = 114
	tagSmallAtom     = 115 // Latin-1, short
	tagMap           = 116
	tagFun           = 117 // before OTP 23
	tagAtomUTF8      = 118
	tagSmallAtomUTF8 = 119
	tagV4Port        = 120
	tagLocal         = 121 // OTP 26: a hash, then a term that only its maker may read
)

// Kind is what a term is, whatever tag it wears.
type Kind uint8

const (
	KindInvalid Kind = iota
	KindInt          // integer of any size
	KindFloat
	KindAtom
	KindTuple
	KindList // a list, a string of bytes, or the empty list
	KindMap
	KindBinary
	KindBitstring // a binary whose last byte is partial
	KindPid
	KindPort
	KindRef
	KindFun
	KindLocal
)

var kindNames = [...]string{"nothing", "an integer", "a float", "an atom", "a tuple", "a list", "a map",
	"a binary", "a bitstring", "a pid", "a port", "a reference", "a fun", "a local term"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

var kindOf = [256]Kind{
	tagNewFloat: KindFloat, tagFloat: KindFloat,
	tagBitBinary: KindBitstring, tagBinary: KindBinary,
	tagPid: KindPid, tagNewPid: KindPid,
	tagPort: KindPort, tagNewPort: KindPort, tagV4Port: KindPort,
	tagRef: KindRef, tagNewRef: KindRef, tagNewerRef: KindRef,
	tagSmallInt: KindInt, tagInt: KindInt, tagSmallBig: KindInt, tagLargeBig: KindInt,
	tagAtom: KindAtom, tagSmallAtom: KindAtom, tagAtomUTF8: KindAtom, tagSmallAtomUTF8: KindAtom,
	tagSmallTuple: KindTuple, tagLargeTuple: KindTuple,
	tagNil: KindList, tagString: KindList, tagList: KindList,
	tagMap: KindMap,
	tagFun: KindFun, tagNewFun: KindFun, tagExport: KindFun,
	tagLocal: KindLocal,
}

// Limits bound what one frame may ask for. The zero value of a field means its default.
type Limits struct {
	Size     int // bytes of a frame; default 16 MiB + 64 KiB
	Inflated int // bytes of a compressed term once inflated; default 64 MiB
	Depth    int // nesting of a built term; default 256
	Count    int // terms of a built term; default 4 Mi
}

// Defaults of Limits.
const (
	DefaultSize     = 16<<20 + 64<<10
	DefaultInflated = 64 << 20
	DefaultDepth    = 256
	DefaultCount    = 4 << 20
)

func (l Limits) filled() Limits {
	if l.Size == 0 {
		l.Size = DefaultSize
	}
	if l.Inflated == 0 {
		l.Inflated = DefaultInflated
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	if l.Count == 0 {
		l.Count = DefaultCount
	}
	return l
}

// Error is a term that could not be read. Offset counts bytes from the start of the frame, or of the
// inflated term where Inflated is set.
type Error struct {
	Offset   int
	Inflated bool
	Message  string
}

func (e *Error) Error() string {
	where := "byte"
	if e.Inflated {
		where = "inflated byte"
	}
	return fmt.Sprintf("etf: %s %d: %s", where, e.Offset, e.Message)
}
