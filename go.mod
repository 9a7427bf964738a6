module nxvk

go 1.25.0

require (
	github.com/ebitengine/purego v0.11.3
	github.com/rs/zerolog v1.35.1
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	golang.org/x/sys v0.29.0 // indirect
	gonum.org/v1/gonum v0.17.0 // indirect
)
