package device

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"nxvk/kernel"
	"nxvk/vkrt"
)

// probeVersion changes with what the probe asks.
const probeVersion = 2

// Probed is Probe, or what an earlier Probe of the same device with the same driver found: that lies in
// dir, the folder of the pipeline cache. An empty dir keeps nothing. A file that cannot be read is
// replaced; log is told.
func Probed(d *vkrt.Device, dir string, log func(level, message string)) (kernel.Target, error) {
	if dir == "" {
		return Probe(d)
	}
	i := d.Info()
	id := sha256.Sum256(fmt.Appendf(nil, "%d %s %s %s %s %s %#x %#x", probeVersion, i.DeviceUUID, i.DriverUUID, i.Driver, i.DriverInfo, i.Name, i.VendorID, i.DeviceID))
	path := filepath.Join(dir, "numerics-"+hex.EncodeToString(id[:12])+".json")
	t := Target(i)
	if b, err := os.ReadFile(path); err == nil {
		if err = json.Unmarshal(b, &t.Num); err == nil {
			return t, nil
		}
		log("warning", fmt.Sprintf("numerics: %s is discarded: %v", path, err))
	}
	t, err := Probe(d)
	if err == nil {
		if err := keep(path, t.Num); err != nil {
			log("warning", fmt.Sprintf("numerics: not kept: %v", err))
		}
	}
	return t, err
}

// keep writes v as JSON under path, whole or not at all.
func keep(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".numerics-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
