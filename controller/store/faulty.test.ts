import { openEmbeddedSubject } from "../../test/helpers/contract-subject.ts";
import { blobsContract } from "./contract/blobs.ts";
import { seedOfRun } from "./contract/harness.ts";
import { kvContract } from "./contract/kv.ts";
import { objectsContract } from "./contract/objects.ts";

const seed = seedOfRun("faulty");
kvContract("faulty", () => openEmbeddedSubject(seed));
objectsContract("faulty", () => openEmbeddedSubject(seed));
blobsContract("faulty", () => openEmbeddedSubject(seed));
