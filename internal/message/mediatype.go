package message

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// octetStream is the type of content without one.
const octetStream = "application/octet-stream"

// mediaType returns a safe Content-Type: the type and the few parameters that have a meaning outside their
// message. An invalid type is replaced by a guess from the file name. Composite types are sent as plain
// bytes.
func mediaType(contentType, filename string) (string, []parameter) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil && err != mime.ErrInvalidMediaParameter || !strings.Contains(kind, "/") || !isASCII(kind) ||
		len(kind) > 127 {
		return TypeByName(filename), nil
	}
	if strings.HasPrefix(kind, "multipart/") {
		return octetStream, nil
	}
	var kept []parameter
	for _, name := range []string{"charset", "method", "component", "type", "version", "profile",
		"report-type"} {
		if value := params[name]; value != "" && isASCII(value) && len(value) <= maxParameter &&
			!hasControl(value) {
			kept = append(kept, parameter{name: name, value: value})
		}
	}
	return kind, kept
}

// TypeByName returns the media type that the extension of a file name stands for, or
// application/octet-stream. It is the same on every machine.
func TypeByName(filename string) string {
	if kind, ok := typesByExtension[strings.ToLower(path.Ext(filename))]; ok {
		return kind
	}
	return octetStream
}

// extensionOf returns the file extension of a type, or ".bin".
func extensionOf(kind string) string {
	for _, e := range preferredExtensions {
		if typesByExtension[e] == kind {
			return e
		}
	}
	return ".bin"
}

// typesByExtension replaces the system's mime.types files, which differ between machines.
var typesByExtension = map[string]string{
	".7z": "application/x-7z-compressed", ".avif": "image/avif", ".bmp": "image/bmp", ".css": "text/css",
	".csv":  "text/csv",
	".doc":  "application/msword",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".eml":  "message/rfc822", ".epub": "application/epub+zip", ".gif": "image/gif", ".gz": "application/gzip",
	".heic": "image/heic", ".htm": "text/html", ".html": "text/html", ".ics": "text/calendar",
	".ico":  "image/vnd.microsoft.icon",
	".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".js": "text/javascript", ".json": "application/json",
	".log": "text/plain",
	".m4a": "audio/mp4", ".md": "text/markdown", ".mov": "video/quicktime", ".mp3": "audio/mpeg",
	".mp4": "video/mp4",
	".odp": "application/vnd.oasis.opendocument.presentation",
	".ods": "application/vnd.oasis.opendocument.spreadsheet",
	".odt": "application/vnd.oasis.opendocument.text",
	".ogg": "audio/ogg", ".pdf": "application/pdf", ".png": "image/png", ".ppt": "application/vnd.ms-powerpoint",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".rar":  "application/vnd.rar", ".rtf": "application/rtf", ".svg": "image/svg+xml",
	".tar": "application/x-tar",
	".tif": "image/tiff", ".tiff": "image/tiff", ".tsv": "text/tab-separated-values", ".txt": "text/plain",
	".vcf": "text/vcard",
	".wav": "audio/wav", ".webm": "video/webm", ".webp": "image/webp", ".xls": "application/vnd.ms-excel",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".xml":  "application/xml", ".zip": "application/zip",
}

// preferredExtensions are the extensions of files without a name.
var preferredExtensions = []string{
	".png", ".jpg", ".gif", ".webp", ".svg", ".bmp", ".avif", ".pdf", ".txt", ".html", ".csv", ".ics", ".eml",
	".json", ".xml", ".zip", ".gz",
	".docx", ".xlsx", ".pptx", ".doc", ".xls", ".ppt", ".odt", ".ods", ".mp3", ".mp4", ".vcf", ".md", ".rtf",
}

// cleanFilename removes the path, which reveals the sender's file system, and misleading characters: control
// characters, and marks that change the writing direction ("exe.fdp" shown as "pdf.exe").
func cleanFilename(filename string) string {
	if i := strings.LastIndexAny(filename, `/\`); i >= 0 {
		filename = filename[i+1:]
	}
	filename = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' ||
			r == '\ufeff' {
			return -1
		}
		return r
	}, filename)
	filename = strings.TrimSpace(filename)
	if filename == "." || filename == ".." {
		return ""
	}
	return filename
}

func hasControl(s string) bool {
	return strings.IndexFunc(s, unicode.IsControl) >= 0 || !utf8.ValidString(s)
}
