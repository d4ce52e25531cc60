package settings

import (
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/serve"
)

// HTTP is where metrics and health are served.
func HTTP(c config.HTTP) serve.Config { return serve.Config{Listen: c.Listen, WebConfig: c.WebConfig} }
