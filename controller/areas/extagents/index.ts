export { extagentsArea } from "./area.ts";
export { ExtAgentService } from "./service.ts";
