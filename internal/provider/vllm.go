package provider

// vLLM: docs.vllm.ai/en/latest/serving/openai_compatible_server.html; a key when it was
// started with --api-key. With continuous_usage_stats every chunk has the usage so far.
func vLLM() Vendor {
	v := local("vllm", "http://127.0.0.1:8000/v1", "VLLM")
	v.FlatErrors = true // before 0.10
	return v
}
