package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Faults of the store. All of them mean that it is not known what is stored: serve without
// it. They differ in what an operator does about them.
var (
	// ErrThrottled: the table or account is over its limits; it passes by itself.
	ErrThrottled = errors.New("dynamo: throttled")
	// ErrUnavailable: no answer, or an answer that is the service's own fault.
	ErrUnavailable = errors.New("dynamo: unavailable")
	// ErrRefused: the service answers and refuses: missing table or permission, bad credentials.
	ErrRefused = errors.New("dynamo: refused")
	// errRestless: the row changed under every attempt.
	errRestless = fmt.Errorf("%w: the row kept changing", ErrUnavailable)
)

// validation is the code of a request that does not fit the stored item.
const validation = "ValidationException"

// fault is what any error but a failed condition becomes: the one place where errors of the
// SDK are read. Its text has no URL, header or signature in it, as the SDK's may.
func fault(ctx context.Context, op, key string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("dynamo: %s %q: %w", op, key, ended)
	}
	detail, kind := classify(err)
	return fmt.Errorf("%w: %s %q: %s", kind, op, key, detail)
}

func classify(err error) (detail string, kind error) {
	if errors.Is(err, ErrThrottled) || errors.Is(err, ErrUnavailable) {
		return "no attempt left", err
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		code := api.ErrorCode()
		switch {
		case isThrottle(code):
			return code, ErrThrottled
		case api.ErrorFault() == smithy.FaultServer || strings.HasPrefix(code, "Internal") || code == "ServiceUnavailable":
			return code, ErrUnavailable
		case isSignature(code): // the message would quote the canonical request, session token and all
			return code, ErrRefused
		}
		return code + ": " + api.ErrorMessage(), ErrRefused
	}
	return connection(err), ErrUnavailable
}

func isThrottle(code string) bool {
	switch code {
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "Throttling",
		"LimitExceededException", "TooManyRequestsException", "SlowDown":
		return true
	}
	return false
}

func isSignature(code string) bool {
	switch code {
	case "InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignatureException", "IncompleteSignature",
		"AuthFailure", "RequestTimeTooSkewed", "MissingAuthenticationToken", "MissingAuthenticationTokenException":
		return true
	}
	return false
}

// connection says in a word what happened to a call that has no answer.
func connection(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return "the name of the endpoint is not known"
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return innermost(err).Error()
}

func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// lost tells whether err is a failed condition, and returns the item that failed it; nil
// when there is none.
func lost(err error) (item, bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

// isValidation tells whether the stored item has a type that the write cannot work on.
func isValidation(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == validation
}
