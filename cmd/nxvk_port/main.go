// Command nxvk_port runs tensor programs on a Vulkan device for an Erlang node that speaks to it over
// stdin and stdout.
//
//	nxvk_port [serve]           serve a node: what the nx_vulkan package starts
//	nxvk_port info [--json]     describe the devices and the one that would be used
//	nxvk_port info --program F  print what the graphs of a recording become on this device
//	nxvk_port replay FILE       run a recording again, compare its answers and time it
//	nxvk_port bench             measure round trips, chains, memory and matmul; JSON lines
//	nxvk_port version
//
// Environment: NXVK_DEVICE chooses a device by index or part of its name; NXVK_LOG is the level of what goes
// to stderr (debug, info, warn, error; default warn); NXVK_RECORD names a file that gets every frame;
// NXVK_VALIDATION=1 turns the validation layer on; NXVK_CACHE names the folder of the pipeline cache, "-" for none.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/rs/zerolog"

	"nxvk/device"
	"nxvk/dispatch"
	"nxvk/kernel"
	"nxvk/vkrt"
)

const usage = `usage: nxvk_port COMMAND [FLAGS]

  serve            serve an Erlang node over stdin and stdout (the default)
  info [--json]    describe the devices and the one that would be used
  replay FILE      run a recording again, compare its answers and time it
  bench            measure round trips, chains, memory and matmul
  version          print the version

NXVK_DEVICE chooses a device, NXVK_LOG the level of what goes to stderr (debug, info, warn, error), NXVK_RECORD
names a file that gets every frame, NXVK_CACHE the folder of the pipeline cache ("-" for none), and
NXVK_VALIDATION=1 turns the validation layer on.
`

func main() {
	name, args := "serve", os.Args[1:]
	if len(args) > 0 && (args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help") {
		fmt.Print(usage)
		return
	}
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		name, args = args[0], args[1:]
	}
	commands := map[string]func([]string) error{
		"serve": serve, "info": info, "replay": replay, "bench": bench, "version": version,
	}
	run, ok := commands[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "nxvk_port: no command %q; there are serve, info, replay, bench and version\n", name)
		os.Exit(2)
	}
	if err := run(args); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "nxvk_port: %v\n", err)
		os.Exit(1)
	}
}

// port is an opened device with what goes with it.
type port struct {
	device *vkrt.Device
	target kernel.Target
	log    zerolog.Logger
}

// logger writes to stderr at the level that NXVK_LOG names.
func logger() zerolog.Logger {
	level, err := zerolog.ParseLevel(os.Getenv("NXVK_LOG"))
	if err != nil || os.Getenv("NXVK_LOG") == "" {
		level = zerolog.WarnLevel
	}
	return zerolog.New(zerolog.ConsoleWriter{Out: os.Stderr, NoColor: true, TimeFormat: "15:04:05.000"}).Level(level).With().Timestamp().Logger()
}

func logTo(l zerolog.Logger) func(level, message string) {
	return func(level, message string) {
		z, err := zerolog.ParseLevel(level)
		if level == "warning" {
			z, err = zerolog.WarnLevel, nil
		}
		if err != nil {
			z = zerolog.InfoLevel
		}
		l.WithLevel(z).Msg(message)
	}
}

// open opens the device that NXVK_DEVICE chooses and learns its numerics. log takes what the driver has to say.
func open(l zerolog.Logger, log func(level, message string)) (*port, error) {
	d, err := vkrt.Open(vkrt.Options{
		Device: os.Getenv("NXVK_DEVICE"), CacheDir: os.Getenv("NXVK_CACHE"),
		Validation: os.Getenv("NXVK_VALIDATION") == "1", Log: log,
	})
	if err != nil {
		return nil, err
	}
	t, err := device.Probed(d, cacheDir(), log)
	if err != nil {
		d.Close()
		return nil, err
	}
	return &port{device: d, target: t, log: l}, nil
}

// cacheDir is the folder of caches, "" for none.
func cacheDir() string {
	switch dir := os.Getenv("NXVK_CACHE"); dir {
	case "":
		base, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		return filepath.Join(base, "nxvk")
	case "-":
		return ""
	default:
		return dir
	}
}

// packageVersion is that of the nx_vulkan package which this port is part of.
const packageVersion = "0.1.0"

func version([]string) error {
	rev := "unknown revision"
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				rev = s.Value
			}
		}
	}
	fmt.Printf("nxvk_port %s, wire %d, %s %s/%s, %s\n", packageVersion, dispatch.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH, rev)
	return nil
}

// flags parses the flags of a command, before and behind its arguments, of which it wants n.
func flags(f *flag.FlagSet, args []string, n int, usage string) error {
	f.Usage = func() {
		fmt.Fprintf(f.Output(), "usage: nxvk_port %s\n", usage)
		f.PrintDefaults()
	}
	var files []string
	for {
		if err := f.Parse(args); err != nil {
			return err
		}
		if f.NArg() == 0 {
			break
		}
		files, args = append(files, f.Arg(0)), f.Args()[1:]
	}
	if len(files) != n {
		return fmt.Errorf("usage: nxvk_port %s", usage)
	}
	return f.Parse(append([]string{"--"}, files...))
}
