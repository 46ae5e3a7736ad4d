import { setFlagsFromString } from "node:v8";
import { REGEXP_V8_FLAGS } from "../../../common/regex/pattern.ts";

// Set before the first pattern is compiled, as the programs do at their start.
for (const flag of REGEXP_V8_FLAGS) setFlagsFromString(flag);
