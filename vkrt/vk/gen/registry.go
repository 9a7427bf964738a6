package main

import (
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// registry is what the generator keeps of vk.xml.
type registry struct {
	header    string // VK_HEADER_VERSION
	structs   map[string]*structDef
	commands  map[string]*command
	kinds     map[string]string      // type name → category
	handles   map[string]bool        // handle → dispatchable
	typedefs  map[string]string      // bitmask or basetype → what it is a typedef of
	bits      map[string]string      // FlagBits enum → its Flags type
	enums     map[string][]enumValue // enum or FlagBits type → values
	constants map[string]string      // API constants → value
}

type structDef struct {
	name    string
	union   bool
	sType   string // the value that its sType must have
	members []decl
}

type command struct {
	name   string
	result string
	params []decl
}

// decl is one C declaration: a member or a parameter.
type decl struct {
	name  string
	base  string // type name without qualifiers
	stars int
	dims  []string // array extents: numbers or names of constants
}

type enumValue struct {
	name  string
	value int64
}

// The shapes of vk.xml that are read; everything else is skipped.
type (
	xmlRegistry struct {
		Types      []xmlType    `xml:"types>type"`
		Enums      []xmlEnums   `xml:"enums"`
		Commands   []xmlCommand `xml:"commands>command"`
		Features   []xmlFeature `xml:"feature"`
		Extensions []xmlFeature `xml:"extensions>extension"`
	}
	xmlType struct {
		Name     string      `xml:"name,attr"`
		Category string      `xml:"category,attr"`
		Alias    string      `xml:"alias,attr"`
		Requires string      `xml:"requires,attr"`
		Bits     string      `xml:"bitvalues,attr"`
		Members  []xmlMember `xml:"member"`
		Inner    string      `xml:",innerxml"`
	}
	xmlMember struct {
		Values string `xml:"values,attr"`
		API    string `xml:"api,attr"`
		Inner  string `xml:",innerxml"`
	}
	xmlCommand struct {
		Proto  xmlMember   `xml:"proto"`
		Params []xmlMember `xml:"param"`
	}
	xmlEnums struct {
		Name   string    `xml:"name,attr"`
		Values []xmlEnum `xml:"enum"`
	}
	xmlEnum struct {
		Name      string `xml:"name,attr"`
		Value     string `xml:"value,attr"`
		Bitpos    string `xml:"bitpos,attr"`
		Extends   string `xml:"extends,attr"`
		Offset    string `xml:"offset,attr"`
		Dir       string `xml:"dir,attr"`
		ExtNumber string `xml:"extnumber,attr"`
		Alias     string `xml:"alias,attr"`
	}
	xmlFeature struct {
		API     string `xml:"api,attr"`
		Name    string `xml:"name,attr"`
		Number  string `xml:"number,attr"`
		Require []struct {
			Enums []xmlEnum `xml:"enum"`
		} `xml:"require"`
	}
)

var (
	tagName    = regexp.MustCompile(`(?s)<name>(.*?)</name>`)
	tagComment = regexp.MustCompile(`(?s)<comment>.*?</comment>`)
	tagAny     = regexp.MustCompile(`<[^>]*>`)
	dimension  = regexp.MustCompile(`\[([^\]]*)\]`)
	identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
)

// parseDecl reads a member, parameter or prototype.
func parseDecl(inner string) decl {
	inner = tagComment.ReplaceAllString(inner, "")
	text := html.UnescapeString(tagAny.ReplaceAllString(inner, ""))
	var d decl
	if m := tagName.FindStringSubmatch(inner); m != nil {
		d.name = m[1]
	}
	for _, m := range dimension.FindAllStringSubmatch(text, -1) {
		d.dims = append(d.dims, m[1])
	}
	if i := strings.IndexByte(text, '['); i >= 0 {
		text = text[:i]
	}
	d.stars = strings.Count(text, "*")
	for _, word := range identifier.FindAllString(text, -1) {
		if word != "const" && word != "struct" && word != d.name {
			d.base = word
		}
	}
	return d
}

// readRegistry reads vk.xml. Enum values are those of the core versions up to maxVersion and of the
// named extensions.
func readRegistry(path string, maxVersion string, extensions []string) (*registry, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var x xmlRegistry
	if err := xml.Unmarshal(raw, &x); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r := &registry{
		structs: map[string]*structDef{}, commands: map[string]*command{}, kinds: map[string]string{},
		handles: map[string]bool{}, typedefs: map[string]string{}, bits: map[string]string{},
		enums: map[string][]enumValue{}, constants: map[string]string{},
	}
	for _, t := range x.Types {
		r.addType(t)
	}
	for _, e := range x.Enums {
		for _, v := range e.Values {
			if err := r.addEnum(e.Name, v, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range x.Commands {
		if c.Proto.Inner == "" {
			continue // an alias
		}
		p := parseDecl(c.Proto.Inner)
		cmd := &command{name: p.name, result: p.base}
		for _, q := range c.Params {
			if q.API == "" || strings.Contains(q.API, "vulkan") && q.API != "vulkansc" {
				cmd.params = append(cmd.params, parseDecl(q.Inner))
			}
		}
		r.commands[cmd.name] = cmd
	}
	wanted := map[string]bool{}
	for _, e := range extensions {
		wanted[e] = true
	}
	for _, f := range x.Features {
		if strings.Contains(f.API, "vulkan") && f.Number <= maxVersion {
			if err := r.addFeature(f, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, f := range x.Extensions {
		if wanted[f.Name] {
			n, err := strconv.Atoi(f.Number)
			if err != nil {
				return nil, fmt.Errorf("extension %s: number %q", f.Name, f.Number)
			}
			if err := r.addFeature(f, n); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

func (r *registry) addType(t xmlType) {
	if t.Alias != "" {
		return
	}
	name := t.Name
	if name == "" {
		if m := tagName.FindStringSubmatch(t.Inner); m != nil {
			name = m[1]
		}
	}
	r.kinds[name] = t.Category
	switch t.Category {
	case "define":
		if name == "VK_HEADER_VERSION" {
			f := strings.Fields(tagAny.ReplaceAllString(t.Inner, ""))
			r.header = f[len(f)-1]
		}
	case "handle":
		r.handles[name] = !strings.Contains(t.Inner, "NON_DISPATCHABLE")
	case "basetype", "bitmask":
		text := tagAny.ReplaceAllString(t.Inner, "")
		if f := strings.Fields(strings.TrimSuffix(strings.TrimSpace(text), ";")); len(f) >= 3 && f[0] == "typedef" {
			r.typedefs[name] = f[1]
		}
		for _, b := range []string{t.Requires, t.Bits} {
			if b != "" && t.Category == "bitmask" {
				r.bits[b] = name
			}
		}
	case "struct", "union":
		s := &structDef{name: name, union: t.Category == "union"}
		for _, m := range t.Members {
			if m.API == "vulkansc" {
				continue
			}
			d := parseDecl(m.Inner)
			if d.name == "sType" {
				s.sType = m.Values
			}
			s.members = append(s.members, d)
		}
		r.structs[name] = s
	}
}

func (r *registry) addFeature(f xmlFeature, number int) error {
	for _, q := range f.Require {
		for _, e := range q.Enums {
			if e.Extends != "" {
				if err := r.addEnum(e.Extends, e, number); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addEnum adds one value. ext is the number of the extension that it belongs to, where it has an offset.
func (r *registry) addEnum(enum string, e xmlEnum, ext int) error {
	if e.Alias != "" {
		return nil
	}
	if enum == "API Constants" {
		r.constants[e.Name] = e.Value
		return nil
	}
	var v int64
	var err error
	switch {
	case e.Bitpos != "":
		v, err = strconv.ParseInt(e.Bitpos, 0, 64)
		v = 1 << v
	case e.Offset != "":
		if e.ExtNumber != "" {
			if ext, err = strconv.Atoi(e.ExtNumber); err != nil {
				break
			}
		}
		v, err = strconv.ParseInt(e.Offset, 0, 64)
		v += 1000000000 + int64(ext-1)*1000
		if e.Dir == "-" {
			v = -v
		}
	default:
		v, err = strconv.ParseInt(e.Value, 0, 64)
	}
	if err != nil {
		return fmt.Errorf("enum %s of %s: %w", e.Name, enum, err)
	}
	for _, old := range r.enums[enum] {
		if old.name == e.Name {
			return nil // an extension that was promoted lists its values twice
		}
	}
	r.enums[enum] = append(r.enums[enum], enumValue{e.Name, v})
	return nil
}
