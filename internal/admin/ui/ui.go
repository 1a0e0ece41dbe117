// Package ui turns what the admin plane knows into pages: templates, style, script and charts.
package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"path"
	"sync"
)

// AssetPath is where pages expect style, script and icon.
const AssetPath = "/admin/ui/assets/"

//go:embed pages assets
var files embed.FS

// Site renders pages. It is read-only; any goroutine may use it.
type Site struct {
	assets  map[string]asset
	version string
	pages   func() *template.Template
}

type asset struct {
	kind string
	body []byte
}

// New returns the site. Templates are parsed when the first page is asked for, so that an
// API call does not wait for them.
func New() *Site {
	s := &Site{assets: map[string]asset{}}
	kinds := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	all, err := fs.ReadDir(files, "assets")
	if err != nil {
		panic(err) // cannot happen: they are in the binary
	}
	sum := sha256.New()
	for _, entry := range all {
		body, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err) // cannot happen: it is in the binary
		}
		sum.Write(body)
		s.assets[entry.Name()] = asset{kinds[path.Ext(entry.Name())], body}
	}
	s.version = hex.EncodeToString(sum.Sum(nil)[:6])
	s.pages = sync.OnceValue(s.parse)
	return s
}

func (s *Site) parse() *template.Template {
	funcs := formats()
	funcs["asset"] = func(name string) string { return AssetPath + name + "?v=" + s.version }
	return template.Must(template.New("").Funcs(funcs).ParseFS(files, "pages/*.html"))
}

// Render writes one template, or nothing but an error.
func (s *Site) Render(w io.Writer, name string, data any) error {
	var out bytes.Buffer
	if err := s.pages().ExecuteTemplate(&out, name, data); err != nil {
		return err
	}
	_, err := out.WriteTo(w)
	return err
}

// ServeHTTP answers for style, script and icon. Their addresses change with their content, so
// browsers may keep them.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, ok := s.assets[path.Base(r.URL.Path)]
	if !ok || r.URL.Path != AssetPath+path.Base(r.URL.Path) {
		http.NotFound(w, r)
		return
	}
	w.Header()["Content-Type"] = []string{found.kind}
	if r.URL.RawQuery == "v="+s.version {
		w.Header()["Cache-Control"] = []string{"public, max-age=31536000, immutable"}
	}
	w.Write(found.body) //nolint:errcheck // the client may be gone
}
