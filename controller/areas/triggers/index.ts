export { triggersArea } from "./area.ts";
export { triggerHost } from "./host.ts";
export { TriggerService } from "./service.ts";
