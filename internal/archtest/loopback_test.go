package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// loopbackNet is the first three numbers of a loopback address.
var loopbackNet = regexp.MustCompile(`\b127\.[0-9]+\.[0-9]+\b`)

// Packages are tested side by side, and an address has one owner: what one package's
// tests open, no other's do. 127.0.0.x is of TCP, and of texts.
func TestLoopbackAddressesAreOfOnePackage(t *testing.T) {
	owner := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != root:
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, net := range loopbackNet.FindAllString(string(text), -1) {
			dir := filepath.Dir(path)
			if other, taken := owner[net]; taken && other != dir && net != "127.0.0" {
				t.Errorf("%s uses %s.x, which is %s's", path, net, other)
			}
			owner[net] = dir
		}
		return nil
	}))
	require.Greater(t, len(owner), 50)
}
