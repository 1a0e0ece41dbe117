package translate

import (
	"bytes"
	"encoding/base64"
)

// dataURL takes a data URL with base64 apart. The parts have nothing that JSON escapes, or
// ok is false.
func dataURL(url []byte) (media, data []byte, ok bool) {
	rest, ok := cutFold(url, "data:")
	if !ok {
		return nil, nil, false
	}
	head, data, ok := bytes.Cut(rest, []byte(","))
	if !ok {
		return nil, nil, false
	}
	media, parameters, _ := bytes.Cut(head, []byte(";"))
	if !bytes.HasSuffix(parameters, []byte("base64")) || bytes.ContainsAny(media, "\"\\") || !isBase64(data) {
		return nil, nil, false
	}
	return media, data, true
}

// isBase64 tells whether data can stand in a JSON string as it is; whether it decodes is
// the provider's to say.
func isBase64(data []byte) bool {
	return len(data) > 0 && bytes.IndexByte(data, '"') < 0 && bytes.IndexByte(data, '\\') < 0 &&
		bytes.IndexFunc(data[:min(len(data), 64)], func(c rune) bool { return c < ' ' || c > '~' }) < 0
}

func cutFold(text []byte, prefix string) (rest []byte, ok bool) {
	if len(text) < len(prefix) || !bytes.EqualFold(text[:len(prefix)], []byte(prefix)) {
		return nil, false
	}
	return text[len(prefix):], true
}

func isWebURL(url []byte) bool {
	_, plain := cutFold(url, "http://")
	_, secure := cutFold(url, "https://")
	return plain || secure
}

// ownBlock notes where a user message's blocks begin that are no tool results.
func (r *request) ownBlock(own bool) {
	if own && r.role == "user" && r.others == 0 {
		r.others = len(r.b)
	}
}

// imageBlock writes an image_url part as an image block: data URLs as base64, others as URLs.
func (r *request) imageBlock(part value, own bool) {
	image := part.get("image_url")
	url := image.get("url")
	if image.isText() { // some send the URL itself
		url = image
	}
	if detail := image.get("detail"); detail.isText() && !detail.is("auto") {
		r.drop("messages[].content[].image_url.detail")
	}
	text := url.text()
	media, data, isData := dataURL(text)
	r.ownBlock(own)
	r.open('{')
	r.word("type", "image")
	r.key("source")
	r.open('{')
	switch {
	case isData:
		r.word("type", "base64")
		r.key("media_type")
		r.inner(media)
		r.key("data")
		r.inner(data)
	case isWebURL(text):
		r.word("type", "url")
		r.key("url")
		r.value(url)
	default:
		r.refuse(r.partName("image_url.url"), "an http(s) URL or a data URL with base64 belongs here.")
	}
	r.shut('}')
	r.marker(part.get("cache_control"), false)
	r.shut('}')
}

// fileBlock writes a file part as a document block.
func (r *request) fileBlock(part value) {
	file := part.get("file")
	if !file.get("file_id").empty() {
		r.refuse(r.partName("file.file_id"), "a file that lies at another provider cannot be had; send file_data.")
		return
	}
	media, data, ok := dataURL(file.get("file_data").text())
	r.ownBlock(true)
	r.open('{')
	r.word("type", "document")
	r.key("source")
	r.open('{')
	switch {
	case ok && string(media) == "application/pdf":
		r.word("type", "base64")
		r.word("media_type", "application/pdf")
		r.key("data")
		r.inner(data)
	case ok && bytes.HasPrefix(media, []byte("text/")):
		text, err := base64.StdEncoding.DecodeString(string(data))
		if err != nil {
			r.refuse(r.partName("file.file_data"), "its base64 is malformed.")
			return
		}
		r.word("type", "text")
		r.word("media_type", "text/plain")
		r.key("data")
		r.quote(text)
	default:
		r.refuse(r.partName("file.file_data"), "a data URL with a PDF or text in base64 belongs here.")
	}
	r.shut('}')
	r.copied("title", file.get("filename"))
	r.marker(part.get("cache_control"), false)
	r.shut('}')
}

// imagePart writes an image block as an image_url part.
func (r *request) imagePart(block value, name string) {
	source := block.get("source")
	r.open('{')
	r.word("type", "image_url")
	r.key("image_url")
	r.open('{')
	r.key("url")
	switch kind := source.get("type"); {
	case kind.is("base64") && source.get("media_type").isText() && source.get("data").isText():
		r.inner([]byte("data:"), source.get("media_type").inner(), []byte(";base64,"), source.get("data").inner())
	case kind.is("url") && source.get("url").isText():
		r.value(source.get("url"))
	default:
		r.refuse(name+".source.type", "only base64 and url have a counterpart at this model's provider.")
		r.json("null")
	}
	r.shut('}')
	r.keepMarker(block)
	r.shut('}')
}

// documentPart writes a document block as a file part, or as the text that it holds.
func (r *request) documentPart(block value, name string) {
	source := block.get("source")
	for _, member := range []string{"context", "citations"} {
		if v := block.get(member); !v.empty() && !v.get("enabled").found() || v.get("enabled").isTrue() {
			r.drop("messages[].content[]." + member)
		}
	}
	switch kind := source.get("type"); {
	case kind.is("base64") && source.get("data").isText():
		r.open('{')
		r.word("type", "file")
		r.key("file")
		r.open('{')
		r.key("filename")
		if title := block.get("title"); title.isText() {
			r.value(title)
		} else {
			r.json(`"document.pdf"`) // OpenAI requires one
		}
		r.key("file_data")
		r.inner([]byte("data:"), orText(source.get("media_type").inner(), "application/pdf"), []byte(";base64,"), source.get("data").inner())
		r.shut('}')
		r.keepMarker(block)
		r.shut('}')
	case kind.is("text"):
		r.textPart(source.get("data").inner(), block)
	case kind.is("content") && source.get("content").isText():
		r.textPart(source.get("content").inner(), block)
	case kind.is("content"):
		for _, inside := range source.get("content").elements() {
			if inside.get("type").is("image") {
				r.imagePart(inside, name+".source.content")
			} else {
				r.textPart(inside.get("text").inner(), value{})
			}
		}
	default:
		r.refuse(name+".source.type", "only base64 and text have a counterpart at this model's provider.")
	}
}

func orText(text []byte, other string) []byte {
	if len(text) == 0 {
		return []byte(other)
	}
	return text
}
