package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"switchboard/internal/emulator"
)

const (
	stackName = "switchboard"
	region    = "us-east-1"
	account   = "000000000000"
	// closeBudget is how long requests that are running may take when the stack ends.
	closeBudget = 5 * time.Second
)

// run brings the stack up and keeps it until ctx ends.
func (s *settings) run(ctx context.Context, p process) error {
	root, err := findRoot(s.root)
	if err != nil {
		return err
	}
	endpoint := strings.TrimSuffix(p.getenv("AWS_ENDPOINT_URL"), "/")
	if endpoint != "" && s.functions != "local" {
		return s.deploy(ctx, p, root, endpoint)
	}
	if endpoint == "" && s.functions == "deployed" {
		return errors.New("--functions=deployed needs AWS_ENDPOINT_URL: the built-in emulator has no Lambda")
	}
	t, err := readTemplate(filepath.Join(root, "template.yaml"))
	if err != nil {
		return err
	}
	u := &up{settings: s, process: p, root: root, endpoint: endpoint, template: t}
	defer u.close()
	if err := u.start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	fmt.Fprintln(p.stdout, "\nstopping")
	return nil
}

// up is the stack while it stands.
type up struct {
	*settings
	process  process
	root     string
	endpoint string // of AWS; empty until the emulator stands
	template *template
	closers  []func() // run in reverse
}

func (u *up) close() {
	for i := len(u.closers) - 1; i >= 0; i-- {
		u.closers[i]()
	}
}

func (u *up) onClose(f func()) { u.closers = append(u.closers, f) }

func (u *up) start(ctx context.Context) error {
	routeListener, err := u.listenOn(u.route)
	if err != nil {
		return err
	}
	adminListener, err := u.listenOn(u.admin)
	if err != nil {
		return err
	}
	if err := u.startCloud(); err != nil {
		return err
	}
	route, admin := "http://"+routeListener.Addr().String(), "http://"+adminListener.Addr().String()
	scope := &scope{
		template: u.template, stack: stackName, region: u.region(), account: account, parameters: u.parameters,
		urls: map[string]string{"RouteFunction": route + "/", "AdminFunction": admin + "/"},
	}
	stack, err := scope.build()
	if err != nil {
		return fmt.Errorf("template.yaml: %w", err)
	}
	if err := newClients(u.endpoint, u.region(), u.process.getenv).create(ctx, stack, u.secrets); err != nil {
		return err
	}
	listeners := map[string]net.Listener{"RouteFunction": routeListener, "AdminFunction": adminListener}
	running, err := u.startFunctions(ctx, stack, listeners)
	if err != nil {
		return err
	}
	u.describe(stack, running, route, admin)
	return nil
}

func (u *up) region() string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		if given := u.process.getenv(name); given != "" && u.process.getenv("AWS_ENDPOINT_URL") != "" {
			return given
		}
	}
	return region
}

// startCloud starts the emulator unless AWS_ENDPOINT_URL names another.
func (u *up) startCloud() error {
	if u.endpoint != "" {
		return nil
	}
	listener, err := u.listenOn(u.listen)
	if err != nil {
		return err
	}
	cloud := emulator.New(emulator.Options{Region: region, Account: account})
	u.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
		defer cancel()
		if err := cloud.Close(ctx); err != nil {
			fmt.Fprintln(u.process.stderr, "localstack:", err)
		}
	})
	u.endpoint = "http://" + listener.Addr().String()
	u.serve(listener, control(cloud))
	return nil
}

// control adds what no AWS has: POST /_switchboard/flush delivers the buffered events now.
// A bucket's name cannot begin with "_".
func control(cloud *emulator.Cloud) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /_switchboard/flush", func(w http.ResponseWriter, _ *http.Request) {
		if err := cloud.FlushStreams(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The mux would clean the paths of objects.
		if strings.HasPrefix(r.URL.Path, "/_switchboard/") {
			mux.ServeHTTP(w, r)
			return
		}
		cloud.ServeHTTP(w, r)
	})
}

func (u *up) listenOn(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	u.onClose(func() { listener.Close() }) //nolint:errcheck // closed already when it was served
	return listener, nil
}

// serve serves until close.
func (u *up) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		server.Serve(listener) //nolint:errcheck // always ErrServerClosed, by the closer
	}()
	u.onClose(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeBudget)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close() //nolint:errcheck // its listener is closed, its connections are broken off
		}
		<-stopped
	})
}

// findRoot finds the folder that has template.yaml and go.mod.
func findRoot(given string) (string, error) {
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	for {
		_, noTemplate := os.Stat(filepath.Join(dir, "template.yaml"))
		_, noModule := os.Stat(filepath.Join(dir, "go.mod"))
		if noTemplate == nil && noModule == nil {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if given != "" || above == dir {
			return "", fmt.Errorf("no template.yaml beside a go.mod in %s: run this in the repository, or give --root", dir)
		}
		dir = above
	}
}

// loopback tells whether an address can only be reached from this machine.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
