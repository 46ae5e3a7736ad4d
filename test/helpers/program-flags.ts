import { setFlagsFromString } from "node:v8";
import { REGEXP_V8_FLAGS } from "../../common/regex/pattern.ts";

// As programs do at their start: before the first pattern is compiled.
for (const flag of REGEXP_V8_FLAGS) setFlagsFromString(flag);
