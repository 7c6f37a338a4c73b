#!/bin/sh
# Builds the archives of a release: tools/dist.sh FOLDER VERSION. There is one for each of Linux and macOS on amd64 and arm64.
# Each holds the program, the completions of three shells and the files that operators copy. Next to it is its SBOM, and
# SHA256SUMS has a line for each file. Needs GNU tar. The same commit gives the same bytes.
set -eu

folder=$1 version=$2 go=${GO:-go}
rm -rf "$folder"
mkdir -p "$folder"
made=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
	name=postroom_${version}_$(echo "$platform" | tr / _)
	echo "Building $name"
	GOOS=${platform%/*} GOARCH=${platform#*/} GO=$go sh tools/build.sh "$folder/$name/postroom" "$version"
	mkdir "$folder/$name/completion"
	cp cmd/postroom/completion.bash cmd/postroom/completion.zsh cmd/postroom/completion.fish "$folder/$name/completion"
	cp README.md CHANGELOG.md deploy/config.example.yaml deploy/postroom.service "$folder/$name"
	$go run -C tools ./sbom "$PWD/$folder/$name/postroom" "$PWD/$folder/$name.cdx.json"
	tar -C "$folder" --sort=name --mtime="@$made" --owner=0 --group=0 --numeric-owner -cf - "$name" | gzip -n9 >"$folder/$name.tar.gz"
	rm -rf "${folder:?}/$name"
done
(cd "$folder" && sha256sum -- *.tar.gz *.cdx.json >SHA256SUMS && cat SHA256SUMS)
