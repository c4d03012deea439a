package main

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// writeSBOM writes what a binary is made of, as CycloneDX 1.6 in JSON: what Go's linker has
// noted in the binary itself, so that nothing is listed that is not in it, and nothing left
// out. sum is the binary's SHA-256.
func writeSBOM(out io.Writer, info *debug.BuildInfo, version string, at time.Time, sum []byte) error {
	main := component(cyclonedx.ComponentTypeApplication, info.Main.Path, version)
	main.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	main.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}}
	var parts []cyclonedx.Component
	var refs []string
	for _, m := range modulesOf(info) {
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, m.Version)
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) > 0 {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		}
		parts, refs = append(parts, c), append(refs, c.BOMRef)
	}
	std := component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))
	parts, refs = append(parts, std), append(refs, std.BOMRef)
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum).URN()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: at.Format(time.RFC3339), Component: &main}
	bom.Components, bom.Dependencies = &parts, &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &refs}}
	e := cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON)
	e.SetPretty(true)
	return e.EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

func component(kind cyclonedx.ComponentType, path, version string) cyclonedx.Component {
	purl := fmt.Sprintf("pkg:golang/%s@%s", path, version)
	return cyclonedx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}

// modulesOf are the modules that a binary is linked of, besides its own, by path.
func modulesOf(info *debug.BuildInfo) (all []debug.Module) {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b debug.Module) int { return strings.Compare(a.Path, b.Path) })
	return all
}
