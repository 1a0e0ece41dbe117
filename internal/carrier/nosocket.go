//go:build lambdaonly

package carrier

import (
	"context"
	"errors"
	"net/http"
)

func serveSocket(context.Context, http.Handler, Options) error {
	return errors.New("carrier: this binary serves on Lambda only; build it without the tag lambdaonly")
}
