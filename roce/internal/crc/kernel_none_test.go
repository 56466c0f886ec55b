//go:build noasm || !(amd64 || arm64)

package crc

var kernelNames = []string{kernelGo: "go"}

// featuresOff: there is nothing to take away.
var featuresOff = map[string]string{"": "go"}
