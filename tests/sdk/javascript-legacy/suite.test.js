// The suite for azure-storage 2.x: every topic, then the check that no scenario was left out.

import "./tables.js";
import "./values.js";
import "./writes.js";
import "./keys.js";
import "./filters.js";
import "./queries.js";
import "./transactions.js";
import "./access.js";
import "./account-access.js";
import "./service.js";
import { finish } from "./target.js";

finish();
