"""Commands that may read no more than the file's mode allows, also where the tests run as root."""

import os

# Root without these two capabilities is refused as everybody else is.
WITHOUT_PRIVILEGE = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
