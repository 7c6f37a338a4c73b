// Sbom writes what a Go program is made of as CycloneDX 1.6 in JSON: the modules that its build recorded,
// each with its version and checksum.
//
//	go run -C tools ./sbom PROGRAM OUTPUT
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"runtime/debug"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "sbom: usage: sbom PROGRAM OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(program, output string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("read what %s is made of: %w", program, err)
	}
	f, err := os.Create(output) //nolint:gosec // the path is the caller's
	if err != nil {
		return err
	}
	encoder := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.EncodeVersion(bill(info), cdx.SpecVersion1_6); err != nil {
		return fmt.Errorf("write %s: %w", output, err)
	}
	fmt.Printf("%s: %d modules\n", output, len(info.Deps))
	return f.Close()
}

// bill lists the modules, and the standard library under the version of Go.
func bill(info *debug.BuildInfo) *cdx.BOM {
	bom := cdx.NewBOM()
	main := component(info.Main, cdx.ComponentTypeApplication)
	goVersion := strings.TrimPrefix(info.GoVersion, "go")
	parts := []cdx.Component{component(debug.Module{Path: "std", Version: goVersion}, cdx.ComponentTypeLibrary)}
	for _, dep := range info.Deps {
		parts = append(parts, component(*dep, cdx.ComponentTypeLibrary))
	}
	bom.Metadata = &cdx.Metadata{Component: &main}
	bom.Components = &parts
	return bom
}

// component describes a module. If the build replaced it by a copy, the original is named: the copy lacks
// only files (tools/build.sh).
func component(m debug.Module, kind cdx.ComponentType) cdx.Component {
	purl := "pkg:golang/" + (&url.URL{Path: m.Path}).EscapedPath() + "@" + url.PathEscape(m.Version)
	c := cdx.Component{BOMRef: purl, PackageURL: purl, Type: kind, Name: m.Path, Version: m.Version}
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:"))
	if err == nil && len(sum) == 32 {
		c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return c
}
