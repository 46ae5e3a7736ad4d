import { openEmbeddedSubject } from "../../test/helpers/contract-subject.ts";
import { seedOfRun } from "./contract/harness.ts";
import { kvContract } from "./contract/kv.ts";

const seed = seedOfRun("faulty");
kvContract("faulty", () => openEmbeddedSubject(seed));
