// The suite for @azure/data-tables, @azure/storage-queue and @azure/storage-blob: every topic, then the check that no
// scenario was left out.

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
import "./queue/queues.js";
import "./queue/messages.js";
import "./queue/access.js";
import "./queue/service.js";
import "./blob/containers.js";
import "./blob/blobs.js";
import "./blob/reads.js";
import "./blob/blocks.js";
import "./blob/pages.js";
import "./blob/copies.js";
import "./blob/lists.js";
import "./blob/leases.js";
import "./blob/tags.js";
import "./blob/features.js";
import "./blob/access.js";
import "./blob/account-access.js";
import "./blob/service.js";
import "./blob/analytics.js";
import { finish } from "./target.js";

finish();
