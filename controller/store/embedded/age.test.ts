import { openEmbeddedSubject } from "../../../test/helpers/contract-subject.ts";
import { ageContract } from "../contract/age.ts";

ageContract("embedded", () => openEmbeddedSubject(), { isExact: true });
