import { openEmbeddedSubject } from "../../../test/helpers/engines/contract-subject.ts";
import { blobsContract } from "../contract/blobs.ts";
import { kvContract } from "../contract/kv.ts";
import { objectsContract } from "../contract/objects.ts";

kvContract("embedded", () => openEmbeddedSubject());
objectsContract("embedded", () => openEmbeddedSubject());
blobsContract("embedded", () => openEmbeddedSubject());
