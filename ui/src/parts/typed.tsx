/** A field that takes effect on Enter or when it loses the focus, so that half a word sends no query. */

import { useEffect, useId, useMemo, useState } from "react";

const OFFERED = 50;

export function Typed({
  label,
  value,
  take,
  names,
  near,
  size,
  className = "",
}: {
  label: string;
  value: string;
  take: (written: string) => void;
  /** Possible values; matching ones are suggested. */
  names?: string[];
  /** Called when the field gets the focus. */
  near?: () => void;
  size?: number;
  className?: string;
}) {
  const [text, setText] = useState(value);
  const list = useId();
  useEffect(() => setText(value), [value]);
  const offered = useMemo(() => {
    const wanted = text.toLowerCase();
    const found: string[] = [];
    for (const name of names ?? []) {
      if (found.length === OFFERED) break;
      if (name.toLowerCase().includes(wanted)) found.push(name);
    }
    return found;
  }, [names, text]);
  const done = () => {
    if (text.trim() !== value) take(text.trim());
  };
  return (
    <>
      <input
        className={`field ${className}`}
        aria-label={label}
        placeholder={label}
        value={text}
        list={names && list}
        size={size}
        onFocus={near}
        onChange={(event) => setText(event.target.value)}
        onBlur={done}
        onKeyDown={(event) => event.key === "Enter" && done()}
      />
      {names && (
        <datalist id={list}>
          {offered.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      )}
    </>
  );
}
