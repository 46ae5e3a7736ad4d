import { openEmbeddedSubject } from "../../../test/helpers/engines/contract-subject.ts";
import { ageContract } from "../contract/age.ts";

ageContract("embedded", () => openEmbeddedSubject(), { isExact: true });
