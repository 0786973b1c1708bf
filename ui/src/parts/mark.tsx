/** The mark of shiftwork: the three shifts of a day, each with more hands than the one before. `public/icon.svg` is the same. */
export function Mark({ className = "size-5 text-accent" }: { className?: string }) {
  return (
    <svg aria-hidden="true" viewBox="0 0 32 32" className={className} fill="currentColor">
      <path d="M17.3 1.1A15 15 0 0 1 29.6 22.3L26.5 20.5A11.4 11.4 0 0 0 17.3 4.7ZM28.3 24.6A15 15 0 0 1 3.7 24.6L9.6 21.2A8.2 8.2 0 0 0 22.4 21.2ZM2.4 22.3A15 15 0 0 1 14.7 1.1L14.7 11.2A5 5 0 0 0 11.2 17.3Z" />
    </svg>
  );
}
