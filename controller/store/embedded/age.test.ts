import { openEmbeddedSubject } from "../../../test/helpers/contract-subject.ts";
import { ageContract } from "../contract/age.ts";

// Removed terms are remembered in the entity for `OBJECT_TOMBSTONE_KEEP_MS`, so each rewrite costs more than the one before.
ageContract("embedded", () => openEmbeddedSubject(), { rewrites: 6, isExact: true });
