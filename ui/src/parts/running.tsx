/** How many jobs of a pool run now. */

import type { Pool } from "../data/types";
import { t } from "../language";
import { Meter } from "./basics";

/** Never more than it has slots: a claimed job counts as running a moment before it begins. */
export const runningIn = (pool: Pool) => Math.min(pool.running, pool.workers);

export function RunningMeter({ pool }: { pool: Pool }) {
  return <Meter value={runningIn(pool)} most={pool.workers} label={t("Running jobs of {name}", { name: pool.name })} />;
}
