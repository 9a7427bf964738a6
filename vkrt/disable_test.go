package vkrt

import (
	"slices"
	"strings"
	"testing"
)

// What NXVK_DISABLE names is neither reported nor turned on, and names that nothing has are refused.
func TestDisable(t *testing.T) {
	full := openTest(t, Options{}).Info()
	t.Setenv(DisableVar, "int8, f64,int64,f64")
	d, err := Open(Options{CacheDir: "-"})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	i := d.Info()
	if i.F64 || i.I64 || i.I8 || i.Storage8 || i.I16 != full.I16 || i.Storage16 != full.Storage16 || i.F16 != full.F16 {
		t.Errorf("features %+v", i.Features)
	}
	if want := []string{"f64", "int64", "int8"}; !slices.Equal(i.Disabled, want) {
		t.Errorf("disabled %v, want %v", i.Disabled, want)
	}
	t.Setenv(DisableVar, "f64,int7")
	for what, err := range map[string]error{"open": errOf(Open(Options{CacheDir: "-"})), "list": errOf(Devices())} {
		if err == nil || !strings.Contains(err.Error(), `"int7"`) {
			t.Errorf("%s: error %v, want one that names int7", what, err)
		}
	}
}

func errOf[T any](_ T, err error) error { return err }
