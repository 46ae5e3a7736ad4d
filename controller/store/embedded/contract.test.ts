import { openEmbeddedSubject } from "../../../test/helpers/contract-subject.ts";
import { kvContract } from "../contract/kv.ts";

kvContract("embedded", () => openEmbeddedSubject());
